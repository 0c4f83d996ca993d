import { Inject, Injectable } from '@nestjs/common';
import { WebSocketGateway } from '@nestjs/websockets';
import {
  RESERVED_CHANNELS,
  createRouter,
  workspaceConfig,
  type AntiphonConfig,
  type Router,
} from '@antiphon/config';
import { cancelTurn, forkSession, newSession } from '@antiphon/contracts/agent';
import type { SessionAddress } from '@antiphon/contracts/agent';
import type { ChatSendParams } from '@antiphon/contracts/gateway';
import { isPermitted, type Principal } from '@antiphon/contracts/identity';
import { METHODS } from '@antiphon/contracts/reference';
import { invalid, notFound } from '@antiphon/kernel';
import { CONFIG, REQUESTS } from '@antiphon/service-host';
import type { GatewayRequests } from '../gateway.ports.js';
import { HandleMethod } from '../sockets/handle-method.js';
import type { MethodCall } from '../sockets/rpc-method.js';

/** The router of each workspace: its own bindings, and its first agent by default. */
@Injectable()
export class WorkspaceRouters {
  readonly #routers = new WeakMap<AntiphonConfig, Router>();

  constructor(@Inject(CONFIG) private readonly config: AntiphonConfig) {}

  of(workspace: string): Router {
    const own = workspaceConfig(this.config, workspace);
    const router = this.#routers.get(own) ?? createRouter(own.bindings, own.agents[0]?.id ?? '');
    this.#routers.set(own, router);
    return router;
  }
}

/**
 * Returns the address of a message: the agent that it names, else the agent that the bindings
 * choose. Throws for a channel of the runtime, and if the workspace has no agent.
 */
export const resolveAddress = (router: Router, params: Omit<ChatSendParams, 'content'>): SessionAddress => {
  const { channel, account, peer, guild, team, agent } = params;
  if (RESERVED_CHANNELS.has(channel)) {
    const message = `channel: "${channel}" is reserved for sessions of the runtime. What to do: choose another name`;
    throw invalid('GATEWAY.INVALID_PARAMS', message, { data: { fields: ['channel'] } });
  }
  const agentId = agent ?? router.route({ channel, account, peer, guild, team });
  if (agentId === '') {
    const message =
      'the workspace has no configured agent. What to do: name one in `agent`, or configure one';
    throw notFound('AGENT.NOT_FOUND', message);
  }
  return { agentId, channel, account, peer };
};

/** Returns the fields of a principal that requests about sessions carry. */
export const commonOf = ({ workspace, caller, agentId }: Principal) => ({
  workspace,
  caller,
  ...(agentId === null ? {} : { callerAgent: agentId }),
});

/** Returns true for operators, who choose models that no configured agent has. */
export const mayUseAnyModel = (principal: Principal): boolean => isPermitted(principal, 'operations:write');

/** Serves `session.new`, `session.fork` and `session.cancel` of the WebSocket. */
@WebSocketGateway()
export class SessionMethods {
  constructor(
    @Inject(REQUESTS) private readonly requests: GatewayRequests,
    @Inject(WorkspaceRouters) private readonly routers: Pick<WorkspaceRouters, 'of'>,
  ) {}

  @HandleMethod(METHODS['session.new'])
  create({ params, workspace, principal }: MethodCall<'session.new'>) {
    const { idempotencyKey } = params;
    const target =
      'sessionId' in params
        ? { sessionId: params.sessionId }
        : { address: resolveAddress(this.routers.of(workspace), params) };
    return this.requests.request(newSession, { ...commonOf(principal), target, idempotencyKey });
  }

  @HandleMethod(METHODS['session.fork'])
  fork({ params, principal }: MethodCall<'session.fork'>) {
    const request = { ...params, ...commonOf(principal), anyModel: mayUseAnyModel(principal) };
    return this.requests.request(forkSession, request);
  }

  @HandleMethod(METHODS['session.cancel'])
  async cancel({ params, principal }: MethodCall<'session.cancel'>) {
    const request = { ...commonOf(principal), ...params };
    const { cancelled, status } = await this.requests.request(cancelTurn, request);
    return { cancelled, ...(status === undefined ? {} : { status }) };
  }
}
