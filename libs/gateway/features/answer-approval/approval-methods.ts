import { answerApproval, getApproval, listApprovals } from '@antiphon/contracts/agent';
import { ApprovalAnswerParams, ApprovalParams, ApprovalsQuery } from '@antiphon/contracts/gateway';
import { defineMethod, type RpcMethod, type RpcResult } from '../answer-rpc/rpc-method.js';
import { approverAtTheGate } from '../authenticate/approver.js';
import type { GatewayRequests } from '../gateway-requests.port.js';

interface Deps {
  readonly requests: GatewayRequests;
}

const approvalAnswer = ({ requests }: Deps): RpcMethod =>
  defineMethod('approval.answer', ApprovalAnswerParams, async ({ params, workspace }): Promise<RpcResult> => {
    const asked = { workspace, approver: approverAtTheGate(), ...params };
    const { recorded } = await requests.request(answerApproval, asked);
    return { recorded };
  });

const approvalList = ({ requests }: Deps): RpcMethod =>
  defineMethod('approval.list', ApprovalsQuery, ({ params: { session, ...query }, workspace }) => {
    const of = session === undefined ? {} : { sessionId: session };
    return requests.request(listApprovals, { workspace, ...query, ...of });
  });

const approvalGet = ({ requests }: Deps): RpcMethod =>
  defineMethod('approval.get', ApprovalParams, ({ params, workspace }) =>
    requests.request(getApproval, { workspace, ...params }),
  );

/** `approval.answer`, `approval.list` and `approval.get`. */
export const approvalMethods = (deps: Deps): RpcMethod[] => [
  approvalAnswer(deps),
  approvalList(deps),
  approvalGet(deps),
];
