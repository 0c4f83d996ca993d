import type { ReserveBudgetReply, ReserveBudgetRequest, ScopeKind } from '@antiphon/contracts/metering';
import { isoTime } from '@antiphon/kernel';
import type { Clock } from '@antiphon/kernel';
import { defineCounter } from '@antiphon/observability';
import { scopesAt } from '@antiphon/metering-domain';
import type { BudgetLimits } from '@antiphon/metering-domain';
import type { EndReservations } from '../end-reservations/end-reservations.js';
import type { BudgetLedger } from '../keep-ledger/ledger.js';

export interface ReserveBudgetDeps {
  readonly ledger: BudgetLedger;
  readonly endReservations: EndReservations;
  readonly clock: Clock;
  readonly limits: BudgetLimits;
}

export type ReserveBudget = (request: ReserveBudgetRequest) => Promise<ReserveBudgetReply>;

const refusals = defineCounter(
  'antiphon_budget_refusals',
  'Model calls that were refused for their budget, by reason and kind of scope',
);

const counted = (reply: ReserveBudgetReply): ReserveBudgetReply => {
  if (!reply.granted) refusals.add(1, { reason: reply.reason ?? 'over_limit', scope: reply.scope });
  return reply;
};

/** Row keys are compared as text: one spelling for each id and each time. */
const normalized = (request: ReserveBudgetRequest): ReserveBudgetRequest => ({
  ...request,
  reservationId: request.reservationId.toLowerCase(),
  sessionId: request.sessionId.toLowerCase(),
  turnId: request.turnId.toLowerCase(),
  expiresAt: new Date(request.expiresAt).toISOString(),
});

/**
 * Reserves the bound of one model attempt in every scope, or refuses. Before a refusal stands, metering looks into the
 * log for calls of that scope that have ended and are not settled yet: a call that has just finished blocks nobody.
 */
export const createReserveBudget = ({
  ledger,
  endReservations,
  clock,
  limits,
}: ReserveBudgetDeps): ReserveBudget => {
  const scopeKeyOf = (request: ReserveBudgetRequest, kind: ScopeKind): string | undefined =>
    scopesAt(limits, request.sessionId, isoTime(clock)).find((scope) => scope.kind === kind)?.key;

  return async (asked) => {
    const request = normalized(asked);
    const looked = new Set<string>();
    for (;;) {
      const { reply } = await ledger.submit(request.workspace, { type: 'Reserve', request });
      if (reply.granted || reply.reason !== 'over_limit') return counted(reply);
      const scopeKey = scopeKeyOf(request, reply.scope);
      // Each scope once: what is still open then is at work.
      if (scopeKey === undefined || looked.has(scopeKey)) return counted(reply);
      looked.add(scopeKey);
      if ((await endReservations.inScope(request.workspace, scopeKey)) === 0) return counted(reply);
    }
  };
};
