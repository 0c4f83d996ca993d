import type { BudgetScope, Price } from '@antiphon/contracts/metering';
import { affordableOutputTokens, boundMicroUsd } from '@antiphon/kernel';
import type { Balance } from './balance.js';
import { frozen, overLimit, unknownPrice } from './refusal.js';
import type { Refusal } from './refusal.js';

/** Requested tokens of a call. */
export interface AdmissionAsk {
  readonly provider: string;
  readonly model: string;
  readonly inputBound: number;
  readonly maxOutputTokens: number;
  readonly minOutputTokens: number;
}

export interface ScopeStanding {
  readonly scope: BudgetScope;
  readonly balance: Balance;
}

export type Admission =
  | {
      readonly granted: true;
      readonly outputBound: number;
      readonly tokens: number;
      readonly microUsd: number;
    }
  | { readonly granted: false; readonly refusal: Refusal };

/** Returns true for a call that can cost nothing. It passes each limit of money. */
const isFree = (ask: AdmissionAsk, price: Price | null): boolean =>
  price !== null && boundMicroUsd(price, ask.inputBound, ask.maxOutputTokens) === 0;

/** Returns true if a frozen scope does not admit the call. */
const holds = ({ scope, balance }: ScopeStanding, ask: AdmissionAsk, price: Price | null): boolean =>
  balance.frozenBy !== null &&
  (scope.limitTokens !== null || (scope.limitMicroUsd !== null && !isFree(ask, price)));

/** Returns the output tokens that a scope's token limit leaves next to the input. */
const outputLeftByTokens = ({ scope, balance }: ScopeStanding, inputBound: number): number =>
  scope.limitTokens === null
    ? Infinity
    : scope.limitTokens - balance.settledTokens - balance.reservedTokens - inputBound;

const outputLeftByMoney = ({ scope, balance }: ScopeStanding, ask: AdmissionAsk, price: Price | null) => {
  if (scope.limitMicroUsd === null || price === null || isFree(ask, price)) return Infinity;
  const left = scope.limitMicroUsd - balance.settledMicroUsd - balance.reservedMicroUsd;
  return left < 0 ? -1 : affordableOutputTokens(price, ask.inputBound, left);
};

const firstRefusal = (
  ask: AdmissionAsk,
  scopes: readonly ScopeStanding[],
  price: Price | null,
): Refusal | undefined => {
  const floor = Math.min(ask.minOutputTokens, ask.maxOutputTokens);
  for (const standing of scopes) {
    const { scope, balance } = standing;
    if (outputLeftByTokens(standing, ask.inputBound) < floor) return overLimit('tokens', scope, balance);
    if (outputLeftByMoney(standing, ask, price) < floor) return overLimit('usd', scope, balance);
  }
  for (const standing of scopes) {
    const { scope, balance } = standing;
    if (scope.limitMicroUsd !== null && price === null)
      return unknownPrice(scope, balance, ask.provider, ask.model);
    if (holds(standing, ask, price)) return frozen(scope, balance);
  }
  return undefined;
};

/**
 * Admits a call if settled + reserved + bound is within the limit in every scope, in tokens and in
 * micro-USD. A call that can cost nothing passes each limit of money. The output is capped to the
 * remaining budget. Below `minOutputTokens` the call is refused, and the refusal names the first
 * such scope, narrowest first.
 */
export const decideAdmission = (
  ask: AdmissionAsk,
  scopes: readonly ScopeStanding[],
  price: Price | null,
): Admission => {
  const refusal = firstRefusal(ask, scopes, price);
  if (refusal) return { granted: false, refusal };
  const outputBound = scopes.reduce(
    (least, standing) =>
      Math.min(least, outputLeftByTokens(standing, ask.inputBound), outputLeftByMoney(standing, ask, price)),
    ask.maxOutputTokens,
  );
  return {
    granted: true,
    outputBound,
    tokens: ask.inputBound + outputBound,
    microUsd: price === null ? 0 : boundMicroUsd(price, ask.inputBound, outputBound),
  };
};
