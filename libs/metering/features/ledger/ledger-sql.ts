import type pg from 'pg';
import type { BalanceChange, Reservation } from '@antiphon/metering-domain';
import type { ReservationName } from './ledger-rows.js';

type OpenOrEnded = Exclude<Reservation, { status: 'none' }>;
type StoredReservation = ReservationName & { readonly state: OpenOrEnded };
type Change = BalanceChange & { readonly workspace: string };

/** Changes of a batch. The rows of its balances must exist and be locked. */
export interface LedgerWrite {
  readonly changes: readonly Change[];
  /** `isNew` if the reservation has no row yet. */
  readonly reservations: readonly (StoredReservation & { readonly isNew: boolean })[];
}

/** Named SQL parameters, each an array with one element a row. */
type Columns<Row> = Readonly<Record<string, (row: Row) => unknown>>;

const valuesOf = <Row>(columns: Columns<Row>, rows: readonly Row[]): unknown[] =>
  Object.values(columns).map((column) => rows.map(column));

/** Returns `name => $n` for each column, from `$first` on. PostgreSQL binds them by name. */
const namedParameters = (names: readonly string[], first = 1): string =>
  names.map((name, index) => `${name} => $${first + index}`).join(', ');

const sumChanges = (a: Change, b: Change): Change => ({
  ...a,
  reservedTokens: a.reservedTokens + b.reservedTokens,
  settledTokens: a.settledTokens + b.settledTokens,
  reservedMicroUsd: a.reservedMicroUsd + b.reservedMicroUsd,
  settledMicroUsd: a.settledMicroUsd + b.settledMicroUsd,
  frozenBy: b.frozenBy === undefined ? a.frozenBy : b.frozenBy,
});

/** Sums the changes of each scope: `update … from` applies only one row to each balance. */
const mergeChanges = (changes: readonly Change[]): Change[] => {
  const byScope = new Map<string, Change>();
  for (const change of changes) {
    const name = `${change.workspace} ${change.scopeKey}`;
    const before = byScope.get(name);
    byScope.set(name, before ? sumChanges(before, change) : change);
  }
  return [...byScope.values()];
};

const CHANGE_COLUMNS: Columns<Change> = {
  p_workspace: ({ workspace }) => workspace,
  p_key: ({ scopeKey }) => scopeKey,
  p_reserved_tokens: ({ reservedTokens }) => reservedTokens,
  p_settled_tokens: ({ settledTokens }) => settledTokens,
  p_reserved_micro_usd: ({ reservedMicroUsd }) => reservedMicroUsd,
  p_settled_micro_usd: ({ settledMicroUsd }) => settledMicroUsd,
  p_marks: ({ frozenBy }) => frozenBy !== undefined,
  p_frozen_by: ({ frozenBy }) => frozenBy ?? null,
};
const MARK_NAMES = new Set(['p_marks', 'p_frozen_by']);

const chargedTokens = ({ state }: StoredReservation): number =>
  state.status === 'reserved' ? 0 : state.charged.tokens;
const chargedMicroUsd = ({ state }: StoredReservation): number =>
  state.status === 'reserved' ? 0 : state.charged.microUsd;

/** Columns of reservations that have a row already. */
const UPDATED_COLUMNS: Columns<StoredReservation> = {
  u_workspace: ({ workspace }) => workspace,
  u_id: ({ id }) => id,
  u_status: ({ state }) => state.status,
  u_version: ({ state }) => state.version,
  u_charged_tokens: chargedTokens,
  u_charged_micro_usd: chargedMicroUsd,
  u_corrected: ({ state }) => state.status !== 'reserved' && state.corrected,
  u_open_until: ({ state }) => (state.status === 'reserved' ? state.reserved.expiresAt : null),
};

const asNewColumn = ([name, column]: [string, (row: StoredReservation) => unknown]) => [
  name.replace(/^u_/, 'n_'),
  column,
];

const NEW_COLUMNS: Columns<StoredReservation> = {
  ...(Object.fromEntries(Object.entries(UPDATED_COLUMNS).map(asNewColumn)) as Columns<StoredReservation>),
  n_session_id: ({ state }) => state.reserved.sessionId,
  n_attempt: ({ state }) => state.reserved.attempt,
  n_scope_keys: ({ state }) => state.reserved.scopes.map(({ key }) => key).join(' '),
  n_reserved: ({ state }) => JSON.stringify(state.reserved),
};

const WRITE_NAMES = [CHANGE_COLUMNS, UPDATED_COLUMNS, NEW_COLUMNS].flatMap((columns) => Object.keys(columns));
const WRITE_SQL = `select budget_write(${namedParameters(WRITE_NAMES)})`;

const reservationValues = ({ reservations }: LedgerWrite): unknown[] => [
  ...valuesOf<StoredReservation>(
    UPDATED_COLUMNS,
    reservations.filter(({ isNew }) => !isNew),
  ),
  ...valuesOf<StoredReservation>(
    NEW_COLUMNS,
    reservations.filter(({ isNew }) => isNew),
  ),
];

const writeValues = (write: LedgerWrite): unknown[] => [
  ...valuesOf(CHANGE_COLUMNS, mergeChanges(write.changes)),
  ...reservationValues(write),
];

/** Writes the changes of a batch in one round trip (`budget_write` in the metering migration). */
export const writeLedger = async (client: pg.ClientBase, write: LedgerWrite): Promise<void> => {
  await client.query({ name: 'budget_write', text: WRITE_SQL, values: writeValues(write) });
};

/** Limits of a scope in which a batch reserves; null for none. */
interface ScopeBound {
  readonly limitTokens: number | null;
  readonly limitMicroUsd: number | null;
}
type BoundedChange = Change & { readonly bound: ScopeBound | null };

/** Columns of `budget_commit` for balances: the changes, and the limits that they must keep. */
const BOUNDED_COLUMNS: Columns<BoundedChange> = {
  ...Object.fromEntries(Object.entries(CHANGE_COLUMNS).filter(([name]) => !MARK_NAMES.has(name))),
  p_admits: ({ bound }) => bound !== null,
  p_limit_tokens: ({ bound }) => bound?.limitTokens ?? null,
  p_limit_micro_usd: ({ bound }) => bound?.limitMicroUsd ?? null,
};

const compareText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
const least = (a: number | null, b: number | null): number | null =>
  a === null || b === null ? (a ?? b) : Math.min(a, b);

/** Returns the narrowest limits of each scope in which new reservations are made. */
const boundsOf = (reservations: LedgerWrite['reservations']): ReadonlyMap<string, ScopeBound> => {
  const bounds = new Map<string, ScopeBound>();
  for (const { workspace, state, isNew } of reservations)
    for (const scope of isNew ? state.reserved.scopes : []) {
      const name = `${workspace} ${scope.key}`;
      const known = bounds.get(name) ?? scope;
      bounds.set(name, {
        limitTokens: least(known.limitTokens, scope.limitTokens),
        limitMicroUsd: least(known.limitMicroUsd, scope.limitMicroUsd),
      });
    }
  return bounds;
};

/** Returns the changes in the order in which `budget_commit` locks their balances. */
const boundedChanges = ({ changes, reservations }: LedgerWrite): BoundedChange[] => {
  const bounds = boundsOf(reservations);
  return mergeChanges(changes)
    .map((change) => ({ ...change, bound: bounds.get(`${change.workspace} ${change.scopeKey}`) ?? null }))
    .sort((a, b) => compareText(a.workspace, b.workspace) || compareText(a.scopeKey, b.scopeKey));
};

const COMMIT_NAMES = [BOUNDED_COLUMNS, UPDATED_COLUMNS, NEW_COLUMNS].flatMap((columns) =>
  Object.keys(columns),
);

/** Number of the first parameter after those of `budget_commit`. */
export const FIRST_AFTER_COMMIT = COMMIT_NAMES.length + 1;
/** Parameters of `budget_commit`, bound by name. */
export const COMMIT_PARAMETERS = namedParameters(COMMIT_NAMES);

/** Returns the values of `COMMIT_PARAMETERS`. No change may freeze or unfreeze a scope. */
export const commitValues = (write: LedgerWrite): unknown[] => [
  ...valuesOf(BOUNDED_COLUMNS, boundedChanges(write)),
  ...reservationValues(write),
];
