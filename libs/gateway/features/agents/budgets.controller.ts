import { Controller, Inject } from '@nestjs/common';
import type { Principal } from '@antiphon/contracts/identity';
import { readAgentUsage, readBudgets } from '@antiphon/contracts/metering';
import { BUDGET_ROUTES, type RouteInput } from '@antiphon/contracts/reference';
import { REQUESTS } from '@antiphon/service-host';
import type { z } from 'zod';
import { CurrentPrincipal } from '../access/access-guard.js';
import type { GatewayRequests } from '../gateway.ports.js';
import { HandleRoute } from '../http/handle-route.js';

type Routes = typeof BUDGET_ROUTES;

/** Serves budgets and the cost of agents. */
@Controller()
export class BudgetsController {
  constructor(@Inject(REQUESTS) private readonly requests: GatewayRequests) {}

  @HandleRoute(BUDGET_ROUTES.readBudgets)
  read(
    { query: { session: sessionId, agent: agentId } }: RouteInput<Routes['readBudgets']>,
    @CurrentPrincipal() { workspace }: Principal,
  ): Promise<z.output<typeof readBudgets.reply>> {
    return this.requests.request(readBudgets, { workspace, sessionId, agentId });
  }

  @HandleRoute(BUDGET_ROUTES.readUsage)
  readUsage(
    { query: { agent: agentId, tree: rootId } }: RouteInput<Routes['readUsage']>,
    @CurrentPrincipal() { workspace }: Principal,
  ): Promise<z.output<typeof readAgentUsage.reply>> {
    return this.requests.request(readAgentUsage, { workspace, agentId, rootId });
  }
}
