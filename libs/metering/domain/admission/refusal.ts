import type { BudgetScope, ReserveBudgetReply } from '@antiphon/contracts/metering';
import type { Balance } from '../balance/balance.js';
import { resetsAt } from '../scope/budget-scopes.js';

/** A refused reservation, as it goes back to the agent. */
export type Refusal = Extract<ReserveBudgetReply, { granted: false }>;
export type Unit = Refusal['unit'];

const MICRO = 1_000_000;

/** `$0.95`, `$1.00`, `$0.000123`: never rounded, at least the cents. */
export const formatMicroUsd = (microUsd: number): string => {
  const fraction = String(microUsd % MICRO).padStart(6, '0');
  return `$${Math.floor(microUsd / MICRO)}.${fraction.slice(0, 2)}${fraction.slice(2).replace(/0+$/, '')}`;
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

/** A money limit cannot be kept for a model that nobody has priced. */
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

/** A call over its bound has overspent this scope; it admits nothing until somebody has looked. */
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
