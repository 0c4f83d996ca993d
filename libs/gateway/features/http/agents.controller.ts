import { Controller, Inject } from '@nestjs/common';
import { listAgents, type AgentView } from '@antiphon/contracts/agent';
import type { Principal } from '@antiphon/contracts/identity';
import { GATEWAY_ROUTES, type RouteInput } from '@antiphon/contracts/reference';
import { notFound } from '@antiphon/kernel';
import { REQUESTS } from '@antiphon/service-host';
import { CurrentPrincipal } from '../access/access-guard.js';
import type { GatewayRequests } from '../gateway.ports.js';
import { HandleRoute } from './handle-route.js';
import { createStaleCache, type Cached } from './stale-cache.js';

/** Serves the configured agents, from the cache while the agent service cannot be reached. */
@Controller()
export class AgentsController {
  private readonly agents: (workspace: string) => Promise<Cached<AgentView[]>>;

  constructor(@Inject(REQUESTS) requests: GatewayRequests) {
    this.agents = createStaleCache(
      async (workspace) => (await requests.request(listAgents, { workspace })).agents,
    );
  }

  @HandleRoute(GATEWAY_ROUTES.listAgents)
  async list(
    _input: unknown,
    @CurrentPrincipal() { workspace }: Principal,
  ): Promise<{ agents: AgentView[]; nextCursor: null; stale?: true }> {
    const { value, stale } = await this.agents(workspace);
    return { agents: value, nextCursor: null, ...(stale ? { stale } : {}) };
  }

  @HandleRoute(GATEWAY_ROUTES.getAgent)
  async get(
    { params }: RouteInput<typeof GATEWAY_ROUTES.getAgent>,
    @CurrentPrincipal() { workspace }: Principal,
  ): Promise<AgentView> {
    const { value } = await this.agents(workspace);
    const agent = value.find(({ id }) => id === params.id);
    if (!agent) throw notFound('GATEWAY.AGENT_NOT_FOUND', 'there is no agent with this id');
    return agent;
  }
}
