import type { BudgetEvent, BudgetEventOf } from '@antiphon/contracts/metering';
import { amountOf, applyChange, balanceChanges } from '../balance/balance.js';
import type { Balance } from '../balance/balance.js';
import type { Ledger } from './ledger.js';

type Reserved = BudgetEventOf<'BudgetReserved'>['data'];
type Charge = BudgetEventOf<'BudgetSettled' | 'BudgetCorrected'>;
type Amount = { readonly tokens: number; readonly microUsd: number };

const chargeIn = (events: readonly BudgetEvent[]): Charge | undefined =>
  events.find((event): event is Charge => event.type === 'BudgetSettled' || event.type === 'BudgetCorrected');

/** True where a charge passed its bound, and the scope its limit with it, in tokens or in micro-USD. */
const isOverspent = (
  { limitTokens, limitMicroUsd }: Reserved['scopes'][number],
  { settledTokens, reservedTokens, settledMicroUsd, reservedMicroUsd }: Balance,
  used: Amount,
  bound: Amount,
): boolean =>
  (limitTokens !== null && used.tokens > bound.tokens && settledTokens + reservedTokens > limitTokens) ||
  (limitMicroUsd !== null &&
    used.microUsd > bound.microUsd &&
    settledMicroUsd + reservedMicroUsd > limitMicroUsd);

/**
 * The scopes that a charge over its bound has taken over their limit: the one thing that admission promises not to
 * happen. They admit nothing more, whatever limit is set later, until somebody has looked (docs/adr/0042).
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
