import { Controller, Inject } from '@nestjs/common';
import { reserveBudget } from '@antiphon/contracts/metering';
import type { ReserveBudgetReply, ReserveBudgetRequest } from '@antiphon/contracts/metering';
import type { Clock } from '@antiphon/kernel';
import { HandleRequest } from '@antiphon/messaging';
import { taskScopes } from '@antiphon/metering-domain';
import { defineCounter } from '@antiphon/observability';
import { CLOCK } from '@antiphon/service-host';
import type { BudgetLimitStore } from '../budgets/budget-limit-store.js';
import type { BudgetRuleStore } from '../budgets/budget-rule-store.js';
import type { BudgetLedger } from '../ledger/ledger.js';
import {
  BUDGET_LIMIT_STORE,
  BUDGET_LEDGER,
  END_RESERVATIONS,
  BUDGET_RULE_STORE,
} from '../metering.tokens.js';
import type { EndReservations } from './end-reservations.js';

const refusals = defineCounter(
  'antiphon_budget_refusals',
  'Model calls that were refused for their budget, by reason and kind of scope',
);

const countRefusal = (reply: ReserveBudgetReply): ReserveBudgetReply => {
  if (!reply.granted) refusals.add(1, { reason: reply.reason ?? 'over_limit', scope: reply.scope });
  return reply;
};

/** Normalizes ids and times, because row keys are compared as text. Expiries are PostgreSQL's. */
const normalize = ({ lifetimeMs, ...request }: ReserveBudgetRequest, clock: Clock): ReserveBudgetRequest => ({
  ...request,
  reservationId: request.reservationId.toLowerCase(),
  sessionId: request.sessionId.toLowerCase(),
  turnId: request.turnId.toLowerCase(),
  expiresAt: new Date(lifetimeMs === undefined ? request.expiresAt : clock.now() + lifetimeMs).toISOString(),
});

/** Reserves the bound of a model attempt in every scope, or refuses. */
@Controller()
export class ReserveBudget {
  constructor(
    @Inject(BUDGET_LEDGER) private readonly ledger: BudgetLedger,
    @Inject(END_RESERVATIONS) private readonly endReservations: EndReservations,
    @Inject(CLOCK) private readonly clock: Clock,
    @Inject(BUDGET_LIMIT_STORE) private readonly limitStore: BudgetLimitStore,
    @Inject(BUDGET_RULE_STORE) private readonly ruleStore: Pick<BudgetRuleStore, 'remember'>,
  ) {}

  /**
   * Before it refuses, metering settles calls of that scope that have ended in the log. So a call
   * that has just finished does not block the next one.
   */
  @HandleRequest(reserveBudget)
  async handle(received: ReserveBudgetRequest): Promise<ReserveBudgetReply> {
    const request = normalize(received, this.clock);
    const { workspace, agents = [request.agentId], tasks = [] } = request;
    const checkedScopes = new Set<string>();
    for (;;) {
      const ownerScopes = [...taskScopes(tasks), ...(await this.limitStore.scopesOf(workspace, agents))];
      const { reply } = await this.ledger.submit(workspace, { type: 'Reserve', request, ownerScopes });
      // The next call of this model may be admitted by the commit that begins it.
      if (reply.granted) void this.ruleStore.remember(request);
      if (reply.granted || reply.reason !== 'over_limit') return countRefusal(reply);
      const { scopeKey } = reply;
      // Each scope is checked once: reservations that remain open belong to running calls.
      if (scopeKey === undefined || checkedScopes.has(scopeKey)) return countRefusal(reply);
      checkedScopes.add(scopeKey);
      if ((await this.endReservations.inScope(workspace, scopeKey)) === 0) return countRefusal(reply);
    }
  }
}
