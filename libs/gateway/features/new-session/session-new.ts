import { newSession } from '@antiphon/contracts/agent';
import { SessionNewParams } from '@antiphon/contracts/gateway';
import type { Router } from '@antiphon/gateway-domain';
import { defineMethod, type RpcMethod } from '../answer-rpc/rpc-method.js';
import type { GatewayRequests } from '../gateway-requests.port.js';
import { addressOf } from '../send-message/address-of.js';

/** `session.new`: the key means a new session from now on; the old one stays readable. */
export const sessionNew = (deps: { requests: GatewayRequests; router: Router }): RpcMethod =>
  defineMethod('session.new', SessionNewParams, ({ params, workspace, caller }) => {
    const { idempotencyKey } = params;
    const target =
      'sessionId' in params ? { sessionId: params.sessionId } : { address: addressOf(deps.router, params) };
    const key = idempotencyKey === undefined ? {} : { idempotencyKey };
    return deps.requests.request(newSession, { workspace, caller, target, ...key });
  });
