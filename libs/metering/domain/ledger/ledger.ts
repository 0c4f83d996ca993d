import type { BudgetEvent } from '@antiphon/contracts/metering';
import { applyChange, balanceChanges, emptyBalance } from '../balance/balance.js';
import type { Balance, BalanceChange } from '../balance/balance.js';
import { reservationDecider } from '../reservation/reservation.decider.js';
import type { Reservation } from '../reservation/reservation.decider.js';

/** Balances by scope key and reservations by id, of one workspace. What is not there is empty. */
export interface LedgerSnapshot {
  readonly balances: ReadonlyMap<string, Balance>;
  readonly reservations: ReadonlyMap<string, Reservation>;
}

/** A ledger that events are put into, one by one: the working copy of a batch, and the fold of a rebuild. */
export interface Ledger {
  balance(scopeKey: string): Balance;
  reservation(reservationId: string): Reservation;
  /** Puts an event in; answers what it changed in which scope. */
  put(event: BudgetEvent): BalanceChange[];
  snapshot(): LedgerSnapshot;
}

const reservationIdOf = (event: BudgetEvent): string => event.data.reservationId;

const chargedOf = (reservation: Reservation) =>
  reservation.status === 'none' || reservation.status === 'reserved'
    ? { tokens: 0, microUsd: 0 }
    : reservation.charged;

const changesOf = (before: Reservation, after: Reservation, event: BudgetEvent): BalanceChange[] =>
  after.status === 'none' ? [] : balanceChanges(after.reserved, chargedOf(before), event);

/** Starts from a snapshot (which stays as it is), or from nothing. */
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
