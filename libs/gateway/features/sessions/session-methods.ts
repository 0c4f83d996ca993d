import { cancelTurn, forkSession, newSession } from '@antiphon/contracts/agent';
import type { SessionAddress } from '@antiphon/contracts/agent';
import { SessionCancelParams, SessionForkParams, SessionNewParams } from '@antiphon/contracts/gateway';
import type { ChatSendParams } from '@antiphon/contracts/gateway';
import type { Principal } from '@antiphon/contracts/identity';
import type { Router } from '@antiphon/gateway-domain';
import type { GatewayRequests } from '../gateway.ports.js';
import { defineMethod, type RpcMethod, type RpcResult } from '../sockets/rpc-method.js';

export interface SessionMethodsDeps {
  readonly requests: GatewayRequests;
  readonly routerOf: RouterOf;
}

/** Returns the router of a workspace. */
export type RouterOf = (workspace: string) => Router;

/**
 * Returns the address of a message: the agent that it names, else the agent that the bindings
 * choose.
 */
export const resolveAddress = (router: Router, params: Omit<ChatSendParams, 'content'>): SessionAddress => {
  const { channel, account, peer, guild, team, agent } = params;
  const agentId = agent ?? router.route({ channel, account, peer, guild, team });
  return { agentId, channel, account, peer };
};

/** Returns the fields of a principal that requests about sessions carry. */
export const commonOf = ({ workspace, caller, agentId }: Principal) => ({
  workspace,
  caller,
  ...(agentId === null ? {} : { callerAgent: agentId }),
});

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
    requests.request(forkSession, { ...params, ...commonOf(principal) }),
  ),
  defineMethod('session.cancel', SessionCancelParams, async ({ params, principal }): Promise<RpcResult> => {
    const request = { ...commonOf(principal), ...params };
    const { cancelled, status } = await requests.request(cancelTurn, request);
    return { cancelled, ...(status === undefined ? {} : { status }) };
  }),
];
