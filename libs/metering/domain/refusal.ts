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

const refusal = (
  reason: NonNullable<Refusal['reason']>,
  unit: Unit,
  scope: BudgetScope,
  balance: Balance,
  text: (standing: string) => string,
): Refusal => {
  const { used, reserved, limit } = amounts(scope, balance, unit);
  const show = (amount: number): string => (unit === 'tokens' ? String(amount) : formatMicroUsd(amount));
  const inUnit = (amount: number): number => (unit === 'tokens' ? amount : amount / MICRO);
  return {
    granted: false,
    scope: scope.kind,
    scopeKey: scope.key,
    unit,
    used: inUnit(used),
    reserved: inUnit(reserved),
    limit: inUnit(limit),
    message: text(`${scope.kind}: ${show(used)}/${show(limit)}`),
    reason,
    resetsAt: resetsAt(scope.kind, scope.key),
  };
};

/** `token budget exceeded (session: 9500/10000)`, or `cost budget exceeded (day: $0.95/$1.00)`. */
export const overLimit = (unit: Unit, scope: BudgetScope, balance: Balance): Refusal =>
  refusal(
    'over_limit',
    unit,
    scope,
    balance,
    (standing) => `${unit === 'tokens' ? 'token' : 'cost'} budget exceeded (${standing})`,
  );

/** Refuses a model without a price under a money limit. */
export const unknownPrice = (
  scope: BudgetScope,
  balance: Balance,
  provider: string,
  model: string,
): Refusal =>
  refusal(
    'unknown_price',
    'usd',
    scope,
    balance,
    (standing) =>
      `no price is set for ${provider}/${model}, which a cost budget needs (${standing}): add it under [[prices]]`,
  );

/** Refuses in a scope that a call over its bound overspent, until an operator unfreezes it. */
export const frozen = (scope: BudgetScope, balance: Balance): Refusal =>
  refusal(
    'frozen',
    scope.limitTokens === null ? 'usd' : 'tokens',
    scope,
    balance,
    (standing) =>
      `budget frozen (${standing}): reservation ${balance.frozenBy} used more than its bound and overspent it; ` +
      'an operator must look at it and unfreeze the scope',
  );
