import { cancelTurn, forkSession, newSession } from '@antiphon/contracts/agent';
import type { SessionAddress } from '@antiphon/contracts/agent';
import { SessionCancelParams, SessionForkParams, SessionNewParams } from '@antiphon/contracts/gateway';
import type { ChatSendParams } from '@antiphon/contracts/gateway';
import { isPermitted, type Principal } from '@antiphon/contracts/identity';
import type { Router } from '@antiphon/gateway-domain';
import { invalid, notFound } from '@antiphon/kernel';
import type { GatewayRequests } from '../gateway.ports.js';
import { defineMethod, type RpcMethod, type RpcResult } from '../sockets/rpc-method.js';

export interface SessionMethodsDeps {
  readonly requests: GatewayRequests;
  readonly routerOf: RouterOf;
}

/** Returns the router of a workspace. */
export type RouterOf = (workspace: string) => Router;

/**
 * Channels of sessions that the runtime creates itself. A client's message there would become a
 * turn of a task, a run, a plan, a fork or a chat.
 */
const RESERVED_CHANNELS: ReadonlySet<string> = new Set(['task', 'run', 'plan', 'fork', 'chat', 'agent']);

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

/** Returns `session.new`, `session.fork` and `session.cancel` of the WebSocket. */
export const sessionMethods = ({ requests, routerOf }: SessionMethodsDeps): RpcMethod[] => [
  defineMethod('session.new', SessionNewParams, ({ params, workspace, principal }) => {
    const { idempotencyKey } = params;
    const target =
      'sessionId' in params
        ? { sessionId: params.sessionId }
        : { address: resolveAddress(routerOf(workspace), params) };
    return requests.request(newSession, { ...commonOf(principal), target, idempotencyKey });
  }),
  defineMethod('session.fork', SessionForkParams, ({ params, principal }) =>
    requests.request(forkSession, { ...params, ...commonOf(principal), anyModel: mayUseAnyModel(principal) }),
  ),
  defineMethod('session.cancel', SessionCancelParams, async ({ params, principal }): Promise<RpcResult> => {
    const request = { ...commonOf(principal), ...params };
    const { cancelled, status } = await requests.request(cancelTurn, request);
    return { cancelled, ...(status === undefined ? {} : { status }) };
  }),
];
