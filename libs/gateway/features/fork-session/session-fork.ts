import { forkSession } from '@antiphon/contracts/agent';
import { SessionForkParams } from '@antiphon/contracts/gateway';
import { defineMethod, type RpcMethod } from '../answer-rpc/rpc-method.js';
import type { GatewayRequests } from '../gateway-requests.port.js';

/** `session.fork`: a new session that goes on from this one as it was behind an event. */
export const sessionFork = (deps: { requests: GatewayRequests }): RpcMethod =>
  defineMethod('session.fork', SessionForkParams, ({ params, workspace, caller }) =>
    deps.requests.request(forkSession, { ...params, workspace, caller }),
  );
