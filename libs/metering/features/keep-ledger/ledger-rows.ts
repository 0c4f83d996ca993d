import type pg from 'pg';
import { emptyBalance } from '@antiphon/metering-domain';
import type { Balance, BalanceChange, LedgerSnapshot, Reservation } from '@antiphon/metering-domain';

/** A scope of a workspace, and a reservation of one: what rows are found by. */
export interface ScopeName {
  readonly workspace: string;
  readonly key: string;
}
export interface ReservationName {
  readonly workspace: string;
  readonly id: string;
}

/** Balances and reservations of several workspaces. */
export type LedgerState = ReadonlyMap<string, LedgerSnapshot>;

interface BalanceRow {
  readonly workspace: string;
  readonly scope_key: string;
  readonly reserved_tokens: string;
  readonly settled_tokens: string;
  readonly reserved_micro_usd: string;
  readonly settled_micro_usd: string;
  readonly frozen_by: string | null;
}

interface ReservationRow {
  readonly workspace: string;
  readonly reservation_id: string;
  readonly status: Reservation['status'];
  readonly stream_version: string;
  readonly reserved: Exclude<Reservation, { status: 'none' }>['reserved'];
  readonly charged_tokens: string;
  readonly charged_micro_usd: string;
  readonly corrected: boolean;
}

const toBalance = (row: BalanceRow): Balance => ({
  reservedTokens: Number(row.reserved_tokens),
  settledTokens: Number(row.settled_tokens),
  reservedMicroUsd: Number(row.reserved_micro_usd),
  settledMicroUsd: Number(row.settled_micro_usd),
  frozenBy: row.frozen_by,
});

const toReservation = (row: ReservationRow): Reservation => {
  const { status, reserved, corrected } = row;
  const version = Number(row.stream_version);
  if (status === 'none') return { status, version: 0 };
  if (status === 'reserved') return { status, reserved, version };
  const charged = { tokens: Number(row.charged_tokens), microUsd: Number(row.charged_micro_usd) };
  return { status, reserved, version, charged, corrected };
};

const BALANCE_COLUMNS =
  'workspace, scope_key, reserved_tokens, settled_tokens, reserved_micro_usd, settled_micro_usd, frozen_by';
const RESERVATION_COLUMNS =
  'workspace, reservation_id, status, stream_version, reserved, charged_tokens, charged_micro_usd, corrected';

const ENSURE_SQL = `insert into budget_balances (workspace, scope_key)
  select s.workspace, s.key from unnest($1::text[], $2::text[]) as s (workspace, key)
  order by 1, 2 on conflict do nothing`;

// In the order of their keys, after the inserts of all missing ones (in the same order): nobody waits in a circle.
const LOCK_SQL = `with wanted as (
    select s.workspace, s.key from unnest($1::text[], $2::text[]) as s (workspace, key)
    union
    select r.workspace, k.key from unnest($3::text[], $4::uuid[]) as i (workspace, id)
      join budget_reservations r on r.workspace = i.workspace and r.reservation_id = i.id,
      unnest(r.scope_keys) as k (key)
  )
  select ${BALANCE_COLUMNS.replaceAll(/(\w+)/g, 'b.$1')} from wanted w
    join budget_balances b on b.workspace = w.workspace and b.scope_key = w.key
    order by b.workspace, b.scope_key for update of b`;

const BALANCES_SQL = `select ${BALANCE_COLUMNS} from budget_balances b
  where (b.workspace, b.scope_key) in (select * from unnest($1::text[], $2::text[]))`;

const RESERVATIONS_SQL = `select ${RESERVATION_COLUMNS} from budget_reservations r
  where (r.workspace, r.reservation_id) in (select * from unnest($1::text[], $2::uuid[]))`;

const scopeParams = (scopes: readonly ScopeName[]): unknown[] => [
  scopes.map(({ workspace }) => workspace),
  scopes.map(({ key }) => key),
];
const reservationParams = (reservations: readonly ReservationName[]): unknown[] => [
  reservations.map(({ workspace }) => workspace),
  reservations.map(({ id }) => id),
];

const readReservations = async (client: pg.ClientBase | pg.Pool, names: readonly ReservationName[]) => {
  const values = reservationParams(names);
  return (await client.query<ReservationRow>({ name: 'budget_reservations', text: RESERVATIONS_SQL, values }))
    .rows;
};

const collect = (balances: readonly BalanceRow[], reservations: readonly ReservationRow[]): LedgerState => {
  const state = new Map<string, { balances: Map<string, Balance>; reservations: Map<string, Reservation> }>();
  const of = (workspace: string) => {
    const known = state.get(workspace) ?? { balances: new Map(), reservations: new Map() };
    state.set(workspace, known);
    return known;
  };
  for (const row of balances) of(row.workspace).balances.set(row.scope_key, toBalance(row));
  for (const row of reservations) of(row.workspace).reservations.set(row.reservation_id, toReservation(row));
  return state;
};

/** True when one of these reservations has a scope that is not among the locked balances. */
const missesLock = (state: LedgerState, names: readonly ReservationName[]): boolean =>
  names.some(({ workspace, id }) => {
    const { balances, reservations } = state.get(workspace) ?? {};
    const found = reservations?.get(id);
    return (
      found !== undefined &&
      found.status !== 'none' &&
      found.reserved.scopes.some(({ key }) => !balances?.has(key))
    );
  });

/** Those that froze a locked scope: lifting a freeze is told in their streams. */
const freezers = (rows: readonly BalanceRow[]): ReservationName[] =>
  rows.flatMap(({ workspace, frozen_by: id }) => (id === null ? [] : [{ workspace, id }]));

/**
 * Makes the rows of these scopes, locks them and those of the reservations that exist, and reads both.
 * Answers undefined when another process made one of the reservations in between: roll back and try again.
 */
export const lockLedger = async (
  client: pg.ClientBase,
  scopes: readonly ScopeName[],
  reservations: readonly ReservationName[],
): Promise<LedgerState | undefined> => {
  await client.query({ name: 'budget_ensure', text: ENSURE_SQL, values: scopeParams(scopes) });
  const values = [...scopeParams(scopes), ...reservationParams(reservations)];
  const balances = await client.query<BalanceRow>({ name: 'budget_lock', text: LOCK_SQL, values });
  // A statement of its own: only now does it see what the lock's last holder has committed.
  const found = await readReservations(client, [...reservations, ...freezers(balances.rows)]);
  const state = collect(balances.rows, found);
  return missesLock(state, reservations) ? undefined : state;
};

/** Reads balances without a lock. */
export const readBalances = async (
  pool: pg.Pool,
  workspace: string,
  keys: readonly string[],
): Promise<ReadonlyMap<string, Balance>> => {
  const values = scopeParams(keys.map((key) => ({ workspace, key })));
  const { rows } = await pool.query<BalanceRow>({ name: 'budget_balances', text: BALANCES_SQL, values });
  const found = new Map(rows.map((row) => [row.scope_key, toBalance(row)]));
  return new Map(keys.map((key) => [key, found.get(key) ?? emptyBalance]));
};

export interface LedgerWrite {
  readonly changes: readonly (BalanceChange & { readonly workspace: string })[];
  readonly reservations: readonly (ReservationName & { readonly state: Reservation })[];
}

const WRITE_SQL = `with changed as (
    update budget_balances b set
      reserved_tokens = b.reserved_tokens + c.reserved_tokens,
      settled_tokens = b.settled_tokens + c.settled_tokens,
      reserved_micro_usd = b.reserved_micro_usd + c.reserved_micro_usd,
      settled_micro_usd = b.settled_micro_usd + c.settled_micro_usd,
      frozen_by = case when c.marks then c.frozen_by else b.frozen_by end
    from unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::boolean[], $8::uuid[])
      as c (workspace, key, reserved_tokens, settled_tokens, reserved_micro_usd, settled_micro_usd, marks, frozen_by)
    where b.workspace = c.workspace and b.scope_key = c.key
  )
  insert into budget_reservations as r (workspace, reservation_id, session_id, attempt, scope_keys, status, stream_version,
    reserved, charged_tokens, charged_micro_usd, corrected, open_until)
  select n.workspace, n.id, (n.reserved->>'sessionId')::uuid, (n.reserved->>'attempt')::integer,
    array(select s.scope->>'key' from jsonb_array_elements(n.reserved->'scopes') with ordinality as s (scope, at) order by s.at),
    n.status, n.version, n.reserved, n.charged_tokens, n.charged_micro_usd, n.corrected,
    case when n.status = 'reserved' then (n.reserved->>'expiresAt')::timestamptz end
  from unnest($9::text[], $10::uuid[], $11::text[], $12::bigint[], $13::jsonb[], $14::bigint[], $15::bigint[], $16::boolean[])
    as n (workspace, id, status, version, reserved, charged_tokens, charged_micro_usd, corrected)
  on conflict (workspace, reservation_id) do update set status = excluded.status, stream_version = excluded.stream_version,
    charged_tokens = excluded.charged_tokens, charged_micro_usd = excluded.charged_micro_usd,
    corrected = excluded.corrected, open_until = excluded.open_until`;

/** One change for each scope: an UPDATE … FROM takes only one row for each of its own. */
const merged = (changes: LedgerWrite['changes']): LedgerWrite['changes'] => {
  const byScope = new Map<string, LedgerWrite['changes'][number]>();
  for (const change of changes) {
    const name = JSON.stringify([change.workspace, change.scopeKey]);
    const before = byScope.get(name);
    byScope.set(name, {
      ...change,
      reservedTokens: change.reservedTokens + (before?.reservedTokens ?? 0),
      settledTokens: change.settledTokens + (before?.settledTokens ?? 0),
      reservedMicroUsd: change.reservedMicroUsd + (before?.reservedMicroUsd ?? 0),
      settledMicroUsd: change.settledMicroUsd + (before?.settledMicroUsd ?? 0),
      ...(change.frozenBy === undefined && before?.frozenBy !== undefined
        ? { frozenBy: before.frozenBy }
        : {}),
    });
  }
  return [...byScope.values()];
};

const chargedOf = (state: Reservation) =>
  state.status === 'none' || state.status === 'reserved' ? { tokens: 0, microUsd: 0 } : state.charged;

/** Writes what a batch changed, in one statement. The rows of its balances must be there. */
export const writeLedger = async (client: pg.ClientBase, write: LedgerWrite): Promise<void> => {
  const changes = merged(write.changes);
  const stored = write.reservations.filter(({ state }) => state.status !== 'none');
  await client.query({
    name: 'budget_write',
    text: WRITE_SQL,
    values: [
      changes.map(({ workspace }) => workspace),
      changes.map(({ scopeKey }) => scopeKey),
      changes.map(({ reservedTokens }) => reservedTokens),
      changes.map(({ settledTokens }) => settledTokens),
      changes.map(({ reservedMicroUsd }) => reservedMicroUsd),
      changes.map(({ settledMicroUsd }) => settledMicroUsd),
      changes.map(({ frozenBy }) => frozenBy !== undefined),
      changes.map(({ frozenBy }) => frozenBy ?? null),
      ...reservationParams(stored),
      stored.map(({ state }) => state.status),
      stored.map(({ state }) => state.version),
      stored.map(({ state }) => (state.status === 'none' ? null : JSON.stringify(state.reserved))),
      stored.map(({ state }) => chargedOf(state).tokens),
      stored.map(({ state }) => chargedOf(state).microUsd),
      stored.map(({ state }) => state.status !== 'none' && state.status !== 'reserved' && state.corrected),
    ],
  });
};
