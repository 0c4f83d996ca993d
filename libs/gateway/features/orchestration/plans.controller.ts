import { Controller, Inject } from '@nestjs/common';
import {
  getPlan,
  listPlans,
  runPlan,
  stopPlan,
  takePlanFacts,
  type PlanView,
} from '@antiphon/contracts/agent';
import { isPermitted, type Principal } from '@antiphon/contracts/identity';
import { PLAN_ROUTES, type RouteInput } from '@antiphon/contracts/reference';
import { REQUESTS } from '@antiphon/service-host';
import type { z } from 'zod';
import { CurrentPrincipal } from '../access/access-guard.js';
import type { GatewayRequests } from '../gateway.ports.js';
import { HandleRoute } from '../route/handle-route.js';
import { actorOf } from '../agents/agent-actor.js';
import { AgentAccess } from '../access/agent-access.js';

type Routes = typeof PLAN_ROUTES;

/** Reads change nothing for a viewer, and for an agent, who reads only plans that it runs. */
const mayTakeEdits = (principal: Principal): boolean =>
  principal.agentId === null && isPermitted(principal, 'runs:write');

/** Serves plans, and the runs of their steps. */
@Controller()
export class PlansController {
  constructor(
    @Inject(REQUESTS) private readonly requests: GatewayRequests,
    @Inject(AgentAccess) private readonly access: AgentAccess,
  ) {}

  @HandleRoute(PLAN_ROUTES.listPlans)
  async list(
    { query }: RouteInput<Routes['listPlans']>,
    @CurrentPrincipal() principal: Principal,
  ): Promise<z.output<typeof listPlans.reply>> {
    const page = await this.requests.request(listPlans, { workspace: principal.workspace, ...query });
    const plans = await this.access.filter(principal, page.plans, ({ agentId }) => [agentId]);
    // The key of an agent learns no number of plans that it may not read.
    return { ...page, plans, total: principal.agentId === null ? page.total : plans.length };
  }

  @HandleRoute(PLAN_ROUTES.getPlan)
  async get(
    { query }: RouteInput<Routes['getPlan']>,
    @CurrentPrincipal() principal: Principal,
  ): Promise<PlanView & { position?: number; head?: number }> {
    const { workspace } = principal;
    const { plan, ...places } = await this.requests.request(getPlan, {
      ...{ workspace, ...query, takesEdits: mayTakeEdits(principal) },
    });
    // A plan is a file: the key of an agent reads only those that its agents run.
    await this.access.requireAny(principal, [plan.run?.agentId ?? null]);
    return { ...plan, ...places };
  }

  @HandleRoute(PLAN_ROUTES.runPlan)
  async run(
    { body }: RouteInput<Routes['runPlan']>,
    @CurrentPrincipal() principal: Principal,
  ): Promise<PlanView> {
    const command = { workspace: principal.workspace, actor: actorOf(principal), ...body };
    return (await this.requests.request(runPlan, command)).plan;
  }

  @HandleRoute(PLAN_ROUTES.stopPlan)
  async stop(
    { body }: RouteInput<Routes['stopPlan']>,
    @CurrentPrincipal() principal: Principal,
  ): Promise<PlanView> {
    const command = { workspace: principal.workspace, actor: actorOf(principal), ...body };
    return (await this.requests.request(stopPlan, command)).plan;
  }

  @HandleRoute(PLAN_ROUTES.takePlanFacts)
  async takeFacts(
    { body }: RouteInput<Routes['takePlanFacts']>,
    @CurrentPrincipal() principal: Principal,
  ): Promise<PlanView> {
    const command = { workspace: principal.workspace, actor: actorOf(principal), ...body };
    return (await this.requests.request(takePlanFacts, command)).plan;
  }
}
