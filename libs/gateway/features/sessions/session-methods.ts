import { cancelTurn, forkSession, newSession } from '@antiphon/contracts/agent';
import type { SessionAddress } from '@antiphon/contracts/agent';
import { SessionCancelParams, SessionForkParams, SessionNewParams } from '@antiphon/contracts/gateway';
import type { ChatSendParams } from '@antiphon/contracts/gateway';
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

/** Returns `session.new`, `session.fork` and `session.cancel` of the WebSocket. */
export const sessionMethods = ({ requests, routerOf }: SessionMethodsDeps): RpcMethod[] => [
  defineMethod('session.new', SessionNewParams, ({ params, workspace, caller }) => {
    const { idempotencyKey } = params;
    const target =
      'sessionId' in params
        ? { sessionId: params.sessionId }
        : { address: resolveAddress(routerOf(workspace), params) };
    return requests.request(newSession, { workspace, caller, target, idempotencyKey });
  }),
  defineMethod('session.fork', SessionForkParams, ({ params, workspace, caller }) =>
    requests.request(forkSession, { ...params, workspace, caller }),
  ),
  defineMethod(
    'session.cancel',
    SessionCancelParams,
    async ({ params, workspace, caller }): Promise<RpcResult> => {
      const { cancelled, status } = await requests.request(cancelTurn, { workspace, caller, ...params });
      return { cancelled, ...(status === undefined ? {} : { status }) };
    },
  ),
];
