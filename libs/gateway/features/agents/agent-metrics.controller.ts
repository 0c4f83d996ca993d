import { Controller, Inject } from '@nestjs/common';
import { WebSocketGateway } from '@nestjs/websockets';
import { listCapabilities } from '@antiphon/contracts/agent';
import type { AgentMetricsReply } from '@antiphon/contracts/gateway';
import { isPermitted, type Principal } from '@antiphon/contracts/identity';
import { AGENT_ROUTES, METHODS, type RouteInput } from '@antiphon/contracts/reference';
import { REQUESTS } from '@antiphon/service-host';
import type { z } from 'zod';
import { AgentAccess } from '../access/agent-access.js';
import { CurrentPrincipal } from '../access/access-guard.js';
import type { GatewayRequests } from '../gateway.ports.js';
import { HandleRoute } from '../route/handle-route.js';
import { HandleMethod } from '../sockets/handle-method.js';
import type { MethodCall } from '../sockets/rpc-method.js';
import { MetricsOfAgents } from './metrics-of-agents.js';

type Routes = typeof AGENT_ROUTES;
type Query = RouteInput<Routes['listAgentMetrics']>['query'];
type Capabilities = z.output<typeof listCapabilities.reply>;

const readMetrics = async (
  metrics: MetricsOfAgents,
  access: AgentAccess,
  principal: Principal,
  { agents: agentIds, ...query }: Query,
): Promise<AgentMetricsReply> => {
  const { workspace } = principal;
  const withCosts = isPermitted(principal, 'budgets:read');
  const page = await metrics.read({ workspace, agentIds, ...query }, { withCosts });
  return { ...page, agents: await access.filter(principal, page.agents, ({ agentId }) => [agentId]) };
};

/** Serves the metrics of all agents, and what agents can do. */
@Controller()
export class AgentMetricsController {
  constructor(
    @Inject(MetricsOfAgents) private readonly metrics: MetricsOfAgents,
    @Inject(AgentAccess) private readonly access: AgentAccess,
    @Inject(REQUESTS) private readonly requests: GatewayRequests,
  ) {}

  @HandleRoute(AGENT_ROUTES.listAgentMetrics)
  list(
    { query }: RouteInput<Routes['listAgentMetrics']>,
    @CurrentPrincipal() principal: Principal,
  ): Promise<AgentMetricsReply> {
    return readMetrics(this.metrics, this.access, principal, query);
  }

  @HandleRoute(AGENT_ROUTES.listCapabilities)
  async capabilities(
    { query }: RouteInput<Routes['listCapabilities']>,
    @CurrentPrincipal() principal: Principal,
  ): Promise<Capabilities> {
    const { workspace, agentId: own } = principal;
    const reply = await this.requests.request(listCapabilities, { workspace, ...query });
    if (own === null) return reply;
    const readable = await Promise.all(
      reply.capabilities.map(async ({ name, agents }) => {
        const seen = await this.access.filter(principal, agents, ({ id }) => [id]);
        return { name, count: seen.length, agents: seen };
      }),
    );
    return { ...reply, capabilities: readable.filter(({ count }) => count > 0) };
  }
}

/** Serves the metrics of all agents over the WebSocket. */
@WebSocketGateway()
export class AgentMetricsMethods {
  constructor(
    @Inject(MetricsOfAgents) private readonly metrics: MetricsOfAgents,
    @Inject(AgentAccess) private readonly access: AgentAccess,
  ) {}

  @HandleMethod(METHODS['agent.metrics'])
  list({ params, principal }: MethodCall<'agent.metrics'>): Promise<AgentMetricsReply> {
    return readMetrics(this.metrics, this.access, principal, params);
  }
}
