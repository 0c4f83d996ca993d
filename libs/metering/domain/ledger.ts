import type { BudgetEvent, BudgetEventOf } from '@antiphon/contracts/metering';
import { amountOf, applyChange, balanceChanges, emptyBalance, figureChanges } from './balance.js';
import type { Balance, BalanceChange } from './balance.js';
import { reservationDecider } from './reservation.decider.js';
import type { Reservation } from './reservation.decider.js';

/** Balances by scope key and reservations by id, of one workspace. Missing entries are empty. */
export interface LedgerSnapshot {
  readonly balances: ReadonlyMap<string, Balance>;
  readonly reservations: ReadonlyMap<string, Reservation>;
}

/**
 * Ledger that applies events one by one: the working copy of a batch, and the fold of a rebuild.
 */
export interface Ledger {
  balance(scopeKey: string): Balance;
  reservation(reservationId: string): Reservation;
  /** Applies an event. Returns the changes by scope. */
  put(event: BudgetEvent): BalanceChange[];
  snapshot(): LedgerSnapshot;
}

const reservationIdOf = (event: BudgetEvent): string => event.data.reservationId;

const chargedOf = (reservation: Reservation) =>
  reservation.status === 'none' || reservation.status === 'reserved'
    ? { tokens: 0, microUsd: 0 }
    : reservation.charged;

const changesOf = (before: Reservation, after: Reservation, event: BudgetEvent): BalanceChange[] => {
  if (after.status !== 'none') return balanceChanges(after.reserved, chargedOf(before), event);
  // Reads of the past keep no settled reservations: the event itself has its scopes.
  return event.type === 'BudgetCorrected' && event.data.figure !== undefined
    ? figureChanges(event.data, event.data.figure)
    : [];
};

/** Starts from a snapshot, which it does not change, or from an empty ledger. */
export const ledgerFrom = (start?: LedgerSnapshot): Ledger => {
  const balances = new Map(start?.balances);
  const reservations = new Map(start?.reservations);
  const balance = (key: string): Balance => balances.get(key) ?? emptyBalance;
  const reservation = (id: string): Reservation => reservations.get(id) ?? reservationDecider.initialState();
  return {
    balance,
    reservation,
    put: (event) => {
      const before = reservation(reservationIdOf(event));
      const after = reservationDecider.evolve(before, event);
      const changes = changesOf(before, after, event);
      if (after.status !== 'none') reservations.set(reservationIdOf(event), after);
      for (const change of changes)
        balances.set(change.scopeKey, applyChange(balance(change.scopeKey), change));
      return changes;
    },
    snapshot: () => ({ balances, reservations }),
  };
};

type Reserved = BudgetEventOf<'BudgetReserved'>['data'];
type Charge = BudgetEventOf<'BudgetSettled' | 'BudgetCorrected'>;
type Amount = { readonly tokens: number; readonly microUsd: number };

const chargeIn = (events: readonly BudgetEvent[]): Charge | undefined =>
  events.find((event): event is Charge => event.type === 'BudgetSettled' || event.type === 'BudgetCorrected');

/**
 * Multiple of its bound from which a charge freezes each limited scope, also within its limit: the
 * bounds of that provider cannot be relied on.
 */
const FAR_OVER = 10;

const isExceeded = (limit: number | null, used: number, bound: number, total: number): boolean =>
  limit !== null && used > bound && (total > limit || used > bound * FAR_OVER);

/**
 * Returns true if a charge over its bound broke the scope's limit, in tokens or in micro-USD, or if
 * it was far over its bound.
 */
const isOverspent = (
  { limitTokens, limitMicroUsd }: Reserved['scopes'][number],
  { settledTokens, reservedTokens, settledMicroUsd, reservedMicroUsd }: Balance,
  used: Amount,
  bound: Amount,
): boolean =>
  isExceeded(limitTokens, used.tokens, bound.tokens, settledTokens + reservedTokens) ||
  isExceeded(limitMicroUsd, used.microUsd, bound.microUsd, settledMicroUsd + reservedMicroUsd);

/**
 * Returns a freeze for each scope whose limit a charge over its bound broke. A charge far over its
 * bound freezes each limited scope. A frozen scope admits nothing until an operator unfreezes it,
 * also after its limit was raised (docs/adr/0042).
 */
export const freezes = (ledger: Ledger, events: readonly BudgetEvent[], frozenAt: string): BudgetEvent[] => {
  const charge = chargeIn(events);
  if (!charge) return [];
  const before = ledger.reservation(charge.data.reservationId);
  if (before.status === 'none') return [];
  const { reserved } = before;
  const charged = before.status === 'reserved' ? { tokens: 0, microUsd: 0 } : before.charged;
  const used = amountOf(charge.data);
  const after = new Map(
    balanceChanges(reserved, charged, charge).map((change) => [
      change.scopeKey,
      applyChange(ledger.balance(change.scopeKey), change),
    ]),
  );
  return reserved.scopes.flatMap((scope): BudgetEvent[] => {
    const balance = after.get(scope.key);
    if (!balance || !isOverspent(scope, balance, used, reserved)) return [];
    const data = {
      reservationId: reserved.reservationId,
      scopeKey: scope.key,
      boundTokens: reserved.tokens,
      usedTokens: used.tokens,
      boundMicroUsd: reserved.microUsd,
      usedMicroUsd: used.microUsd,
      frozenAt,
    };
    return [{ type: 'BudgetScopeFrozen', schemaVersion: 1, data }];
  });
};
