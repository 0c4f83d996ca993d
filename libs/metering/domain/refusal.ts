import { textOf } from '@antiphon/contracts/causes';
import type { Cause } from '@antiphon/contracts/causes';
import type { BudgetScope, ReserveBudgetReply } from '@antiphon/contracts/metering';
import type { Balance } from './balance.js';
import { resetsAt } from './budget-scopes.js';

/** Reply to a refused reservation. */
export type Refusal = Extract<ReserveBudgetReply, { granted: false }>;
export type Unit = Refusal['unit'];

const MICRO = 1_000_000;

/** Formats `$0.95`, `$1.00` or `$0.000123`: never rounded, with at least two decimals. */
export const formatMicroUsd = (microUsd: number): string => {
  const fraction = String(microUsd % MICRO).padStart(6, '0');
  return `$${Math.floor(microUsd / MICRO)}.${fraction.slice(0, 2)}${fraction.slice(2).replace(/(?<!0)0+$/, '')}`;
};

const amounts = (scope: BudgetScope, balance: Balance, unit: Unit) =>
  unit === 'tokens'
    ? {
        used: balance.settledTokens + balance.reservedTokens,
        reserved: balance.reservedTokens,
        limit: scope.limitTokens ?? 0,
      }
    : {
        used: balance.settledMicroUsd + balance.reservedMicroUsd,
        reserved: balance.reservedMicroUsd,
        limit: scope.limitMicroUsd ?? 0,
      };

type Standing = Record<'scope' | 'used' | 'limit', string>;

const refusal = (
  reason: NonNullable<Refusal['reason']>,
  unit: Unit,
  scope: BudgetScope,
  balance: Balance,
  cause: (standing: Standing) => Cause,
): Refusal => {
  const { used, reserved, limit } = amounts(scope, balance, unit);
  const show = (amount: number): string => (unit === 'tokens' ? String(amount) : formatMicroUsd(amount));
  const inUnit = (amount: number): number => (unit === 'tokens' ? amount : amount / MICRO);
  const why = cause({ scope: scope.kind, used: show(used), limit: show(limit) });
  return {
    granted: false,
    scope: scope.kind,
    scopeKey: scope.key,
    unit,
    used: inUnit(used),
    reserved: inUnit(reserved),
    limit: inUnit(limit),
    message: textOf(why),
    cause: why,
    reason,
    resetsAt: resetsAt(scope.kind, scope.key),
  };
};

/** `token budget exceeded (session: 9500/10000)`, or `cost budget exceeded (day: $0.95/$1.00)`. */
export const overLimit = (unit: Unit, scope: BudgetScope, balance: Balance): Refusal =>
  refusal('over_limit', unit, scope, balance, (standing) => ({ kind: 'budget_exceeded', unit, ...standing }));

/** Refuses a model without a price under a money limit. */
export const unknownPrice = (
  scope: BudgetScope,
  balance: Balance,
  provider: string,
  model: string,
): Refusal =>
  refusal('unknown_price', 'usd', scope, balance, (standing) => ({
    kind: 'budget_without_price',
    provider,
    model,
    ...standing,
  }));

/** Refuses in a scope that a call over its bound overspent, until an operator unfreezes it. */
export const frozen = (scope: BudgetScope, balance: Balance): Refusal =>
  refusal('frozen', scope.limitTokens === null ? 'usd' : 'tokens', scope, balance, (standing) => ({
    kind: 'budget_frozen',
    reservationId: String(balance.frozenBy),
    ...standing,
  }));
