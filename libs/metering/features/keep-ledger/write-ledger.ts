import type pg from 'pg';
import type { BalanceChange, Reservation } from '@antiphon/metering-domain';
import { reservationParams } from './ledger-rows.js';
import type { ReservationName } from './ledger-rows.js';

type Known = Exclude<Reservation, { status: 'none' }>;

/** What a batch changed. The rows of its balances must be there and locked. */
export interface LedgerWrite {
  readonly changes: readonly (BalanceChange & { readonly workspace: string })[];
  /** `isNew`: it has no row yet. */
  readonly reservations: readonly (ReservationName & { readonly state: Known; readonly isNew: boolean })[];
}

/** Of `writeParams`. */
export const WRITE_PARAMETERS = 28;
const WRITE_SQL = `select budget_write(${Array.from({ length: WRITE_PARAMETERS }, (_, i) => `$${i + 1}`).join(', ')})`;

type Change = LedgerWrite['changes'][number];

const sum = (a: Change, b: Change): Change => ({
  ...a,
  reservedTokens: a.reservedTokens + b.reservedTokens,
  settledTokens: a.settledTokens + b.settledTokens,
  reservedMicroUsd: a.reservedMicroUsd + b.reservedMicroUsd,
  settledMicroUsd: a.settledMicroUsd + b.settledMicroUsd,
  ...(b.frozenBy === undefined ? {} : { frozenBy: b.frozenBy }),
});

/** One change for each scope: `update … from` takes only one row for each of its own. */
const merged = (changes: readonly Change[]): Change[] => {
  const byScope = new Map<string, Change>();
  for (const change of changes) {
    const name = `${change.workspace} ${change.scopeKey}`;
    const before = byScope.get(name);
    byScope.set(name, before ? sum(before, change) : change);
  }
  return [...byScope.values()];
};

const chargedOf = (state: Known) =>
  state.status === 'reserved' ? { tokens: 0, microUsd: 0 } : state.charged;

const changeParams = (changes: readonly Change[]): unknown[] => [
  changes.map(({ workspace }) => workspace),
  changes.map(({ scopeKey }) => scopeKey),
  changes.map(({ reservedTokens }) => reservedTokens),
  changes.map(({ settledTokens }) => settledTokens),
  changes.map(({ reservedMicroUsd }) => reservedMicroUsd),
  changes.map(({ settledMicroUsd }) => settledMicroUsd),
  changes.map(({ frozenBy }) => frozenBy !== undefined),
  changes.map(({ frozenBy }) => frozenBy ?? null),
];

const stateParams = (reservations: LedgerWrite['reservations']): unknown[] => [
  ...reservationParams(reservations),
  reservations.map(({ state }) => state.status),
  reservations.map(({ state }) => state.version),
  reservations.map(({ state }) => chargedOf(state).tokens),
  reservations.map(({ state }) => chargedOf(state).microUsd),
  reservations.map(({ state }) => state.status !== 'reserved' && state.corrected),
  reservations.map(({ state }) => (state.status === 'reserved' ? state.reserved.expiresAt : null)),
];

const madeParams = (reservations: LedgerWrite['reservations']): unknown[] => [
  reservations.map(({ state }) => state.reserved.sessionId),
  reservations.map(({ state }) => state.reserved.attempt),
  reservations.map(({ state }) => state.reserved.scopes.map(({ key }) => key).join(' ')),
  reservations.map(({ state }) => JSON.stringify(state.reserved)),
];

/** The parameters of `budget_write`. */
export const writeParams = ({ changes, reservations }: LedgerWrite): unknown[] => {
  const made = reservations.filter(({ isNew }) => isNew);
  const continued = reservations.filter(({ isNew }) => !isNew);
  return [
    ...changeParams(merged(changes)),
    ...stateParams(continued),
    ...stateParams(made),
    ...madeParams(made),
  ];
};

/** Writes what a batch changed, in one round trip (`budget_write` in the metering migration). */
export const writeLedger = async (client: pg.ClientBase, write: LedgerWrite): Promise<void> => {
  await client.query({ name: 'budget_write', text: WRITE_SQL, values: writeParams(write) });
};
