import type { BudgetEvent, BudgetEventOf, VendorFigure } from '@antiphon/contracts/metering';
import { assertNever } from '@antiphon/kernel';

/** Reserved and settled amounts of a scope: integer tokens and micro-USD. */
export interface Balance {
  readonly reservedTokens: number;
  readonly settledTokens: number;
  readonly reservedMicroUsd: number;
  readonly settledMicroUsd: number;
  /** The reservation that froze the scope, or null if it is not frozen. */
  readonly frozenBy: string | null;
}

export const emptyBalance: Balance = {
  reservedTokens: 0,
  settledTokens: 0,
  reservedMicroUsd: 0,
  settledMicroUsd: 0,
  frozenBy: null,
};

/** Change of one scope by one event. */
export interface BalanceChange {
  readonly scopeKey: string;
  readonly reservedTokens: number;
  readonly settledTokens: number;
  readonly reservedMicroUsd: number;
  readonly settledMicroUsd: number;
  /** Absent if the event does not change the freeze. */
  readonly frozenBy?: string | null;
}

type Amount = { readonly tokens: number; readonly microUsd: number };
type Reserved = BudgetEventOf<'BudgetReserved'>['data'];

const none: Amount = { tokens: 0, microUsd: 0 };

const onEveryScope = (
  { scopes }: { readonly scopes: readonly Pick<Reserved['scopes'][number], 'key'>[] },
  reserved: Amount,
  settled: Amount,
): BalanceChange[] =>
  scopes.map(({ key }) => ({
    scopeKey: key,
    reservedTokens: reserved.tokens,
    settledTokens: settled.tokens,
    reservedMicroUsd: reserved.microUsd,
    settledMicroUsd: settled.microUsd,
  }));

const mark = (scopeKey: string, frozenBy: string | null): BalanceChange => ({
  scopeKey,
  reservedTokens: 0,
  settledTokens: 0,
  reservedMicroUsd: 0,
  settledMicroUsd: 0,
  frozenBy,
});

const minus = (a: Amount, b: Amount): Amount => ({
  tokens: a.tokens - b.tokens,
  microUsd: a.microUsd - b.microUsd,
});

/**
 * Returns the changes of an event to the balances of its reservation's scopes. `charged` is the
 * charge before the event, which only a correction needs.
 */
export const balanceChanges = (
  reservation: Reserved,
  charged: Amount,
  event: BudgetEvent,
): BalanceChange[] => {
  switch (event.type) {
    case 'BudgetReserved':
      return onEveryScope(reservation, reservation, none);
    case 'BudgetSettled':
      return onEveryScope(reservation, minus(none, reservation), amountOf(event.data));
    case 'BudgetReleased':
      return onEveryScope(reservation, minus(none, reservation), none);
    case 'BudgetExpired':
      return onEveryScope(reservation, minus(none, reservation), event.data);
    case 'BudgetCorrected':
      return onEveryScope(reservation, none, minus(amountOf(event.data), charged));
    case 'BudgetScopeFrozen':
      return [mark(event.data.scopeKey, event.data.reservationId)];
    case 'BudgetScopeUnfrozen':
      return [mark(event.data.scopeKey, null)];
    default:
      return assertNever(event);
  }
};

/** Returns the changes of a vendor's figure, without its reservation. */
export const figureChanges = (
  charge: BudgetEventOf<'BudgetCorrected'>['data'],
  { scopeKeys, replacedTokens, replacedMicroUsd }: VendorFigure,
): BalanceChange[] => {
  const scopes = scopeKeys.map((key) => ({ key }));
  const replaced = { tokens: replacedTokens, microUsd: replacedMicroUsd };
  return onEveryScope({ scopes }, none, minus(amountOf(charge), replaced));
};

/** Returns tokens and money of a charge. */
export const amountOf = (charge: {
  inputTokens: number;
  outputTokens: number;
  microUsd: number;
}): Amount => ({
  tokens: charge.inputTokens + charge.outputTokens,
  microUsd: charge.microUsd,
});

export const applyChange = (balance: Balance, change: BalanceChange): Balance => ({
  reservedTokens: balance.reservedTokens + change.reservedTokens,
  settledTokens: balance.settledTokens + change.settledTokens,
  reservedMicroUsd: balance.reservedMicroUsd + change.reservedMicroUsd,
  settledMicroUsd: balance.settledMicroUsd + change.settledMicroUsd,
  frozenBy: change.frozenBy === undefined ? balance.frozenBy : change.frozenBy,
});
