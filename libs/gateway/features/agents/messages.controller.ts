import { Controller, Inject } from '@nestjs/common';
import { WebSocketGateway } from '@nestjs/websockets';
import {
  listAgentMessages,
  listTopics,
  listWorkspaceMessages,
  sendAgentMessage,
  subscribeAgent,
  type MessageSpec,
  type WorkspaceMessage,
} from '@antiphon/contracts/agent';
import type { Principal } from '@antiphon/contracts/identity';
import { MESSAGE_ROUTES, METHODS, type RouteInput } from '@antiphon/contracts/reference';
import { REQUESTS } from '@antiphon/service-host';
import type { z } from 'zod';
import { CurrentPrincipal } from '../access/access-guard.js';
import type { GatewayRequests } from '../gateway.ports.js';
import { HandleRoute } from '../route/handle-route.js';
import { HandleMethod } from '../sockets/handle-method.js';
import type { MethodCall } from '../sockets/rpc-method.js';
import { AgentAccess } from '../access/agent-access.js';
import { actorOf } from './agent-actor.js';

type Routes = typeof MESSAGE_ROUTES;
type Sent = z.output<typeof sendAgentMessage.reply>;
type Subscribed = z.output<typeof subscribeAgent.reply>;

const send = (
  requests: GatewayRequests,
  principal: Principal,
  message: z.input<typeof MessageSpec>,
  idempotencyKey: string | undefined,
): Promise<Sent> => {
  const { workspace } = principal;
  const command = { workspace, message, actor: actorOf(principal), idempotencyKey };
  return requests.request(sendAgentMessage, command);
};

const AGENT = 'agent/';

/** Returns the agents that a message is from and to. */
const agentsOfMessage = ({ from, to }: WorkspaceMessage): (string | null)[] => [
  from.startsWith(AGENT) ? from.slice(AGENT.length) : null,
  to.kind === 'agent' ? to.agentId : null,
];

/** Serves messages between agents and the topics of agents. */
@Controller()
export class MessagesController {
  constructor(
    @Inject(REQUESTS) private readonly requests: GatewayRequests,
    @Inject(AgentAccess) private readonly access: AgentAccess,
  ) {}

  @HandleRoute(MESSAGE_ROUTES.sendMessage)
  send(
    { body, idempotencyKey }: RouteInput<Routes['sendMessage']>,
    @CurrentPrincipal() principal: Principal,
  ): Promise<Sent> {
    return send(this.requests, principal, body, idempotencyKey);
  }

  @HandleRoute(MESSAGE_ROUTES.sendAgentMessage)
  sendToAgent(
    { params, body, idempotencyKey }: RouteInput<Routes['sendAgentMessage']>,
    @CurrentPrincipal() principal: Principal,
  ): Promise<Sent> {
    return send(this.requests, principal, { ...body, to: { agent: params.id } }, idempotencyKey);
  }

  @HandleRoute(MESSAGE_ROUTES.listMessages)
  async list(
    { params, query }: RouteInput<Routes['listMessages']>,
    @CurrentPrincipal() principal: Principal,
  ): Promise<z.output<typeof listAgentMessages.reply>> {
    const { workspace } = principal;
    await this.access.require(principal, params.id);
    return this.requests.request(listAgentMessages, { workspace, agentId: params.id, ...query });
  }

  @HandleRoute(MESSAGE_ROUTES.listWorkspaceMessages)
  async listAll(
    { query }: RouteInput<Routes['listWorkspaceMessages']>,
    @CurrentPrincipal() principal: Principal,
  ): Promise<z.output<typeof listWorkspaceMessages.reply>> {
    const { workspace } = principal;
    const page = await this.requests.request(listWorkspaceMessages, { workspace, ...query });
    return { ...page, messages: await this.access.filter(principal, page.messages, agentsOfMessage) };
  }

  @HandleRoute(MESSAGE_ROUTES.listTopics)
  async topics(
    { params, query }: RouteInput<Routes['listTopics']>,
    @CurrentPrincipal() principal: Principal,
  ): Promise<z.output<typeof listTopics.reply>> {
    const { workspace } = principal;
    await this.access.require(principal, params.id);
    return this.requests.request(listTopics, { workspace, agentId: params.id, ...query });
  }

  @HandleRoute(MESSAGE_ROUTES.subscribe)
  subscribe(
    { params }: RouteInput<Routes['subscribe']>,
    @CurrentPrincipal() principal: Principal,
  ): Promise<Subscribed> {
    return this.setSubscription(principal, params, true);
  }

  @HandleRoute(MESSAGE_ROUTES.unsubscribe)
  unsubscribe(
    { params }: RouteInput<Routes['unsubscribe']>,
    @CurrentPrincipal() principal: Principal,
  ): Promise<Subscribed> {
    return this.setSubscription(principal, params, false);
  }

  private setSubscription(
    principal: Principal,
    { id: agentId, topic }: { readonly id: string; readonly topic: string },
    subscribed: boolean,
  ): Promise<Subscribed> {
    const { workspace } = principal;
    const command = { workspace, agentId, topic, subscribed, actor: actorOf(principal) };
    return this.requests.request(subscribeAgent, command);
  }
}

/** Serves messages between agents over the WebSocket. */
@WebSocketGateway()
export class MessageMethods {
  constructor(@Inject(REQUESTS) private readonly requests: GatewayRequests) {}

  @HandleMethod(METHODS['message.send'])
  send({ params, principal }: MethodCall<'message.send'>): Promise<Sent> {
    const { idempotencyKey, ...message } = params;
    return send(this.requests, principal, message, idempotencyKey);
  }
}
