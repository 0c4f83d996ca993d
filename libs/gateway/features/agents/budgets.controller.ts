import { Controller, Inject } from '@nestjs/common';
import type { Principal } from '@antiphon/contracts/identity';
import { readAgentUsage, readBudgets, setBudgetLimit, type ScopeUsage } from '@antiphon/contracts/metering';
import { BUDGET_ROUTES, type RouteInput } from '@antiphon/contracts/reference';
import type { EventStore } from '@antiphon/event-store';
import { EVENT_STORE, REQUESTS } from '@antiphon/service-host';
import type { z } from 'zod';
import { listPlugins } from '@antiphon/contracts/sandbox';
import { getAgent } from '@antiphon/contracts/agent';
import { CurrentPrincipal, refuseAgentKey } from '../access/access-guard.js';
import type { GatewayRequests } from '../gateway.ports.js';
import { HandleRoute } from '../route/handle-route.js';
import { AgentAccess } from '../access/agent-access.js';

type Routes = typeof BUDGET_ROUTES;

/** Beginning of the key of an agent's scope. */
const AGENT_KEY = 'agent/';

type LimitChange = DistributiveOmit<z.input<typeof setBudgetLimit.request>, 'workspace' | 'actor'>;
type DistributiveOmit<T, K extends PropertyKey> = T extends unknown ? Omit<T, K> : never;

/** Serves budgets, the cost of agents, and plug-ins. */
@Controller()
export class BudgetsController {
  constructor(
    @Inject(REQUESTS) private readonly requests: GatewayRequests,
    @Inject(EVENT_STORE) private readonly store: Pick<EventStore, 'readStreamPage'>,
    @Inject(AgentAccess) private readonly access: AgentAccess,
  ) {}

  @HandleRoute(BUDGET_ROUTES.readBudgets)
  async read(
    { query: { session: sessionId, agent, agents: withAgents, at } }: RouteInput<Routes['readBudgets']>,
    @CurrentPrincipal() principal: Principal,
  ): Promise<z.output<typeof readBudgets.reply>> {
    const { workspace } = principal;
    const agentId = agent ?? principal.agentId ?? undefined;
    if (agentId !== undefined) await this.access.require(principal, agentId);
    if (sessionId !== undefined) await this.access.requireSession(principal, this.store, sessionId);
    const reply = await this.requests.request(readBudgets, { workspace, sessionId, agentId, withAgents, at });
    return { ...reply, scopes: await this.ownScopes(principal, reply.scopes) };
  }

  @HandleRoute(BUDGET_ROUTES.setAgentLimit)
  async setLimit(
    { params: { id: agentId }, body }: RouteInput<Routes['setAgentLimit']>,
    @CurrentPrincipal() principal: Principal,
  ): Promise<z.output<typeof setBudgetLimit.reply>> {
    const { workspace, agentId: own } = principal;
    if (own === null) await this.requests.request(getAgent, { workspace, agentId });
    return this.changeLimit(principal, { agentId, ...body });
  }

  @HandleRoute(BUDGET_ROUTES.setWorkspaceLimit)
  setWorkspaceLimit(
    { params: { scope }, body }: RouteInput<Routes['setWorkspaceLimit']>,
    @CurrentPrincipal() principal: Principal,
  ): Promise<z.output<typeof setBudgetLimit.reply>> {
    return this.changeLimit(principal, { scope, ...body });
  }

  @HandleRoute(BUDGET_ROUTES.removeWorkspaceLimit)
  removeWorkspaceLimit(
    { params: { scope } }: RouteInput<Routes['removeWorkspaceLimit']>,
    @CurrentPrincipal() principal: Principal,
  ): Promise<z.output<typeof setBudgetLimit.reply>> {
    return this.changeLimit(principal, { scope, limitTokens: null, limitMicroUsd: null, isRemoved: true });
  }

  @HandleRoute(BUDGET_ROUTES.listPlugins)
  plugins(
    _input: unknown,
    @CurrentPrincipal() { workspace }: Principal,
  ): Promise<z.output<typeof listPlugins.reply>> {
    return this.requests.request(listPlugins, { workspace });
  }

  @HandleRoute(BUDGET_ROUTES.readUsage)
  async readUsage(
    { query: { agent: agentId, tree: rootId, by, day, at } }: RouteInput<Routes['readUsage']>,
    @CurrentPrincipal() principal: Principal,
  ): Promise<z.output<typeof readAgentUsage.reply>> {
    const { workspace } = principal;
    await this.access.require(principal, agentId ?? rootId);
    return this.requests.request(readAgentUsage, { workspace, agentId, rootId, by, day, at });
  }

  /** Returns the scopes that a key may see. That of an agent sees its tree and its sessions. */
  private async ownScopes(principal: Principal, scopes: readonly ScopeUsage[]): Promise<ScopeUsage[]> {
    if (principal.agentId === null) return [...scopes];
    const own = scopes.filter(({ kind }) => kind === 'agent' || kind === 'session');
    return this.access.filter(principal, own, ({ kind, key }) => [
      kind === 'agent' ? key.slice(AGENT_KEY.length) : principal.agentId,
    ]);
  }

  private changeLimit(
    principal: Principal,
    change: LimitChange,
  ): Promise<z.output<typeof setBudgetLimit.reply>> {
    refuseAgentKey(principal, 'sets no budgets');
    const { workspace, caller } = principal;
    return this.requests.request(setBudgetLimit, { workspace, ...change, actor: caller });
  }
}
