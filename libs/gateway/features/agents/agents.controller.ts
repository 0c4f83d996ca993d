import { Controller, Inject } from '@nestjs/common';
import { WebSocketGateway } from '@nestjs/websockets';
import {
  changeAgent,
  controlAgent,
  getAgent,
  listAgents,
  readAgentHistory,
  readAgentMetrics,
  spawnAgent,
  type AgentView,
} from '@antiphon/contracts/agent';
import type { Principal } from '@antiphon/contracts/identity';
import { AGENT_ROUTES, METHODS, type RouteInput } from '@antiphon/contracts/reference';
import { REQUESTS } from '@antiphon/service-host';
import type { z } from 'zod';
import { CurrentPrincipal } from '../access/access-guard.js';
import type { GatewayRequests } from '../gateway.ports.js';
import { HandleRoute } from '../route/handle-route.js';
import { createStaleCache, type Cached } from '../route/stale-cache.js';
import { HandleMethod } from '../sockets/handle-method.js';
import type { MethodCall } from '../sockets/rpc-method.js';
import { AgentAccess } from '../access/agent-access.js';
import { actorOf } from './agent-actor.js';

type Routes = typeof AGENT_ROUTES;
type ListRequest = z.input<typeof listAgents.request>;
type ListReply = z.output<typeof listAgents.reply>;
type GetRequest = z.input<typeof getAgent.request>;
type GetReply = z.output<typeof getAgent.reply>;

/** Serves agents. Reads come from the cache while the agent service cannot be reached. */
@Controller()
export class AgentsController {
  private readonly readPage: (request: ListRequest) => Promise<Cached<ListReply>>;
  private readonly readOne: (request: GetRequest) => Promise<Cached<GetReply>>;
  constructor(
    @Inject(REQUESTS) private readonly requests: GatewayRequests,
    @Inject(AgentAccess) private readonly access: AgentAccess,
  ) {
    this.readPage = createStaleCache((request: ListRequest) => requests.request(listAgents, request));
    this.readOne = createStaleCache((request: GetRequest) => requests.request(getAgent, request));
  }

  @HandleRoute(AGENT_ROUTES.listAgents)
  async list(
    { query }: RouteInput<Routes['listAgents']>,
    @CurrentPrincipal() principal: Principal,
  ): Promise<ListReply & { stale?: true }> {
    const { value, stale } = await this.readPage({ workspace: principal.workspace, ...query });
    return { ...(await readable(this.access, principal, value)), ...(stale ? { stale } : {}) };
  }

  @HandleRoute(AGENT_ROUTES.spawnAgent)
  async spawn(
    { body: spec, idempotencyKey }: RouteInput<Routes['spawnAgent']>,
    @CurrentPrincipal() principal: Principal,
  ): Promise<AgentView> {
    const { workspace } = principal;
    const command = { workspace, spec, actor: actorOf(principal), idempotencyKey };
    return (await this.requests.request(spawnAgent, command)).agent;
  }

  @HandleRoute(AGENT_ROUTES.getAgent)
  async get(
    { params, query }: RouteInput<Routes['getAgent']>,
    @CurrentPrincipal() principal: Principal,
  ): Promise<AgentView & { atPosition?: number; head?: number }> {
    await this.access.require(principal, params.id);
    const { value } = await this.readOne({ workspace: principal.workspace, agentId: params.id, ...query });
    const { agent, position: atPosition, head } = value;
    return atPosition === undefined ? agent : { ...agent, atPosition, head };
  }

  @HandleRoute(AGENT_ROUTES.controlAgent)
  async control(
    { params: { id: agentId }, body }: RouteInput<Routes['controlAgent']>,
    @CurrentPrincipal() principal: Principal,
  ): Promise<AgentView> {
    if ('action' in body) return changeState(this.requests, principal, { agentId, ...body });
    const { reason, ...changes } = body;
    const { workspace } = principal;
    const change = { workspace, agentId, changes, reason, actor: actorOf(principal) };
    return (await this.requests.request(changeAgent, change)).agent;
  }

  @HandleRoute(AGENT_ROUTES.terminateAgent)
  terminate(
    { params, query }: RouteInput<Routes['terminateAgent']>,
    @CurrentPrincipal() principal: Principal,
  ): Promise<AgentView> {
    return changeState(this.requests, principal, { agentId: params.id, action: 'terminate', ...query });
  }

  @HandleRoute(AGENT_ROUTES.readHistory)
  async history(
    { params, query }: RouteInput<Routes['readHistory']>,
    @CurrentPrincipal() principal: Principal,
  ): Promise<z.output<typeof readAgentHistory.reply>> {
    const { workspace } = principal;
    await this.access.require(principal, params.id);
    return this.requests.request(readAgentHistory, { workspace, agentId: params.id, ...query });
  }

  @HandleRoute(AGENT_ROUTES.readMetrics)
  async metrics(
    { params, query }: RouteInput<Routes['readMetrics']>,
    @CurrentPrincipal() principal: Principal,
  ): Promise<z.output<typeof readAgentMetrics.reply>> {
    const { workspace } = principal;
    await this.access.require(principal, params.id);
    return this.requests.request(readAgentMetrics, { workspace, agentId: params.id, ...query });
  }
}

/** Returns a page with the agents that the principal may read. */
const readable = async (access: AgentAccess, principal: Principal, page: ListReply): Promise<ListReply> => ({
  ...page,
  agents: await access.filter(principal, page.agents, ({ id }) => [id]),
});

const changeState = async (
  requests: GatewayRequests,
  principal: Principal,
  change: MethodCall<'agent.control'>['params'],
): Promise<AgentView> => {
  const { workspace } = principal;
  const { agent } = await requests.request(controlAgent, { workspace, ...change, actor: actorOf(principal) });
  return agent;
};

/** Serves agents over the WebSocket. */
@WebSocketGateway()
export class AgentMethods {
  constructor(
    @Inject(REQUESTS) private readonly requests: GatewayRequests,
    @Inject(AgentAccess) private readonly access: AgentAccess,
  ) {}

  @HandleMethod(METHODS['agent.spawn'])
  async spawn({ params, workspace, principal }: MethodCall<'agent.spawn'>): Promise<AgentView> {
    const { idempotencyKey, ...spec } = params;
    const command = { workspace, spec, actor: actorOf(principal), idempotencyKey };
    return (await this.requests.request(spawnAgent, command)).agent;
  }

  @HandleMethod(METHODS['agent.list'])
  async list({ params, workspace, principal }: MethodCall<'agent.list'>): Promise<ListReply> {
    const page = await this.requests.request(listAgents, { workspace, ...params });
    return readable(this.access, principal, page);
  }

  @HandleMethod(METHODS['agent.status'])
  async status({ params, workspace, principal }: MethodCall<'agent.status'>): Promise<AgentView> {
    await this.access.require(principal, params.agentId);
    return (await this.requests.request(getAgent, { workspace, ...params })).agent;
  }

  @HandleMethod(METHODS['agent.control'])
  control({ params, principal }: MethodCall<'agent.control'>): Promise<AgentView> {
    return changeState(this.requests, principal, params);
  }
}
