import { cancelTurn } from '@antiphon/contracts/agent';
import { SessionCancelParams } from '@antiphon/contracts/gateway';
import { defineMethod, type RpcMethod, type RpcResult } from '../answer-rpc/rpc-method.js';
import type { GatewayRequests } from '../gateway-requests.port.js';

/** `session.cancel`: the open turn, or the one that is named. */
export const sessionCancel = ({ requests }: { requests: GatewayRequests }): RpcMethod =>
  defineMethod(
    'session.cancel',
    SessionCancelParams,
    async ({ params, workspace, caller }): Promise<RpcResult> => {
      const { sessionId, turnId } = params;
      const turn = turnId === undefined ? {} : { turnId };
      const { cancelled, status } = await requests.request(cancelTurn, {
        workspace,
        caller,
        sessionId,
        ...turn,
      });
      return { cancelled, ...(status === undefined ? {} : { status }) };
    },
  );
