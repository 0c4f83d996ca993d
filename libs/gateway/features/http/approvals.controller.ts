import { Controller, Inject } from '@nestjs/common';
import { answerApproval, getApproval, listApprovals } from '@antiphon/contracts/agent';
import type { ApprovalView, Approver } from '@antiphon/contracts/agent';
import { ApprovalAnswerParams, ApprovalParams, ApprovalsQuery } from '@antiphon/contracts/gateway';
import { APPROVAL_ROUTES, type RouteInput } from '@antiphon/contracts/reference';
import { REQUESTS } from '@antiphon/service-host';
import type { z } from 'zod';
import { WORKSPACE, type GatewayRequests } from '../gateway.ports.js';
import { defineMethod, type RpcMethod, type RpcResult } from '../sockets/rpc-method.js';
import { HandleRoute } from './handle-route.js';

type Routes = typeof APPROVAL_ROUTES;

/**
 * Approver of every request until API keys tell callers apart: the operator of this installation.
 * The agent service checks the role and refuses credentials of agents.
 */
const OPERATOR: Approver = { caller: 'operator', role: 'admin', agentId: null };

/** Serves approvals: tool calls that wait for a decision. */
@Controller()
export class ApprovalsController {
  constructor(
    @Inject(REQUESTS) private readonly requests: GatewayRequests,
    @Inject(WORKSPACE) private readonly workspace: string,
  ) {}

  @HandleRoute(APPROVAL_ROUTES.listApprovals)
  list({
    query: { session: sessionId, ...query },
  }: RouteInput<Routes['listApprovals']>): Promise<z.output<typeof listApprovals.reply>> {
    return this.requests.request(listApprovals, { workspace: this.workspace, sessionId, ...query });
  }

  @HandleRoute(APPROVAL_ROUTES.getApproval)
  get({ params }: RouteInput<Routes['getApproval']>): Promise<ApprovalView> {
    return this.requests.request(getApproval, { workspace: this.workspace, approvalId: params.id });
  }

  @HandleRoute(APPROVAL_ROUTES.answerApproval)
  answer({
    params,
    body,
  }: RouteInput<Routes['answerApproval']>): Promise<z.output<typeof answerApproval.reply>> {
    const { workspace } = this;
    return this.requests.request(answerApproval, {
      workspace,
      approvalId: params.id,
      approver: OPERATOR,
      ...body,
    });
  }
}

/** Returns `approval.answer`, `approval.list` and `approval.get` of the WebSocket. */
export const approvalMethods = (requests: GatewayRequests): RpcMethod[] => [
  defineMethod('approval.answer', ApprovalAnswerParams, async ({ params, workspace }): Promise<RpcResult> => {
    const { recorded } = await requests.request(answerApproval, {
      workspace,
      approver: OPERATOR,
      ...params,
    });
    return { recorded };
  }),
  defineMethod('approval.list', ApprovalsQuery, ({ params: { session: sessionId, ...query }, workspace }) =>
    requests.request(listApprovals, { workspace, sessionId, ...query }),
  ),
  defineMethod('approval.get', ApprovalParams, ({ params, workspace }) =>
    requests.request(getApproval, { workspace, ...params }),
  ),
];
