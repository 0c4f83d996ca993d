import { acrossWorkspaces, type WorkspaceQueries } from '@antiphon/database';
import { emptyBalance } from '@antiphon/metering-domain';
import type { Balance, LedgerSnapshot, Reservation } from '@antiphon/metering-domain';
import type pg from 'pg';

/** Keys of the rows: a scope and a reservation of a workspace. */
export interface ScopeName {
  readonly workspace: string;
  readonly key: string;
}
export interface ReservationName {
  readonly workspace: string;
  readonly id: string;
}

/** Balances and reservations by workspace. */
export type LedgerState = ReadonlyMap<string, LedgerSnapshot>;

export interface BalanceRow {
  readonly workspace: string;
  readonly scope_key: string;
  readonly reserved_tokens: string;
  readonly settled_tokens: string;
  readonly reserved_micro_usd: string;
  readonly settled_micro_usd: string;
  readonly frozen_by: string | null;
}

export interface ReservationRow {
  readonly workspace: string;
  readonly reservation_id: string;
  readonly status: Exclude<Reservation['status'], 'none'>;
  readonly stream_version: string;
  readonly reserved: Exclude<Reservation, { status: 'none' }>['reserved'];
  readonly charged_tokens: string;
  readonly charged_micro_usd: string;
  readonly corrected: boolean;
}

export const BALANCE_COLUMNS =
  'workspace, scope_key, reserved_tokens, settled_tokens, reserved_micro_usd, settled_micro_usd, frozen_by';

export const toBalance = (row: BalanceRow): Balance => ({
  reservedTokens: Number(row.reserved_tokens),
  settledTokens: Number(row.settled_tokens),
  reservedMicroUsd: Number(row.reserved_micro_usd),
  settledMicroUsd: Number(row.settled_micro_usd),
  frozenBy: row.frozen_by,
});

export const toReservation = (row: ReservationRow): Reservation => {
  const { status, reserved, corrected } = row;
  const version = Number(row.stream_version);
  if (status === 'reserved') return { status, reserved, version };
  const charged = { tokens: Number(row.charged_tokens), microUsd: Number(row.charged_micro_usd) };
  return { status, reserved, version, charged, corrected };
};

export const scopeParams = (scopes: readonly ScopeName[]): unknown[] => [
  scopes.map(({ workspace }) => workspace),
  scopes.map(({ key }) => key),
];
export const reservationParams = (reservations: readonly ReservationName[]): unknown[] => [
  reservations.map(({ workspace }) => workspace),
  reservations.map(({ id }) => id),
];

const BALANCES_SQL = `select ${BALANCE_COLUMNS} from budget_balances b
  where (b.workspace, b.scope_key) in (select * from unnest($1::text[], $2::text[]))`;

/** Reads balances without a lock. A scope without a row is empty. */
export const readBalances = async (
  queries: WorkspaceQueries,
  workspace: string,
  keys: readonly string[],
): Promise<ReadonlyMap<string, Balance>> => {
  const values = scopeParams(keys.map((key) => ({ workspace, key })));
  const { rows } = await queries.query<BalanceRow>({
    ...{ name: 'budget_balances', text: BALANCES_SQL, values },
  });
  const found = new Map(rows.map((row) => [row.scope_key, toBalance(row)]));
  return new Map(keys.map((key) => [key, found.get(key) ?? emptyBalance]));
};

/** The workspaces with the largest spending of the scope $2, and the workspace $3. */
const PERIODS_SQL = `with w as (
    select workspace from (select workspace from budget_balances
      where scope_key = $2 and (scope_key like 'day/%' or scope_key like 'month/%')
      order by settled_micro_usd desc, settled_tokens desc limit $4) s
    union select $3)
  select ${BALANCE_COLUMNS} from budget_balances where scope_key = any ($1) and workspace in (select workspace from w)`;

/**
 * Reads the balances of periods of at most `max` workspaces: those that spent most in the last of
 * the periods. One workspace is always among them. The outer keys are workspaces.
 */
export const readPeriods = async (
  pool: pg.Pool,
  keys: readonly string[],
  always: string,
  max: number,
): Promise<ReadonlyMap<string, ReadonlyMap<string, Balance>>> => {
  const { rows } = await acrossWorkspaces(pool).query<BalanceRow>({
    ...{ name: 'budget_periods', text: PERIODS_SQL, values: [keys, keys.at(-1), always, max] },
  });
  const found = new Map<string, Map<string, Balance>>([[always, new Map()]]);
  for (const row of rows) {
    const own = found.get(row.workspace) ?? new Map<string, Balance>();
    found.set(row.workspace, own.set(row.scope_key, toBalance(row)));
  }
  return found;
};

const LOCK_SQL = 'select * from budget_lock($1, $2, $3, $4)';

const isBalance = (row: BalanceRow | ReservationRow): row is BalanceRow =>
  (row as Partial<BalanceRow>).scope_key !== null;

const collect = (rows: readonly (BalanceRow | ReservationRow)[]): LedgerState => {
  const state = new Map<string, { balances: Map<string, Balance>; reservations: Map<string, Reservation> }>();
  for (const row of rows) {
    const own = state.get(row.workspace) ?? { balances: new Map(), reservations: new Map() };
    state.set(row.workspace, own);
    if (isBalance(row)) own.balances.set(row.scope_key, toBalance(row));
    else own.reservations.set(row.reservation_id, toReservation(row));
  }
  return state;
};

/**
 * Creates and locks the balances of these scopes and of the existing reservations' scopes, in the
 * order of their keys. Returns both in one round trip (`budget_lock` in the metering migration).
 * Call it first in a transaction.
 */
export const lockLedger = async (
  client: pg.ClientBase,
  scopes: readonly ScopeName[],
  reservations: readonly ReservationName[],
): Promise<LedgerState> => {
  const values = [...scopeParams(scopes), ...reservationParams(reservations)];
  const { rows } = await client.query<BalanceRow | ReservationRow>({
    name: 'budget_lock',
    text: LOCK_SQL,
    values,
  });
  return collect(rows);
};
