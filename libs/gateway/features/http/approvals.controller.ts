import { Controller, Inject } from '@nestjs/common';
import { answerApproval, getApproval, listApprovals } from '@antiphon/contracts/agent';
import type { Approver } from '@antiphon/contracts/agent';
import { ApprovalAnswerParams, ApprovalParams, ApprovalsQuery } from '@antiphon/contracts/gateway';
import type { Principal } from '@antiphon/contracts/identity';
import { APPROVAL_ROUTES, type RouteInput } from '@antiphon/contracts/reference';
import { REQUESTS } from '@antiphon/service-host';
import type { z } from 'zod';
import { CurrentPrincipal } from '../access/access-guard.js';
import type { GatewayRequests } from '../gateway.ports.js';
import { defineMethod, type RpcMethod, type RpcResult } from '../sockets/rpc-method.js';
import { HandleRoute } from './handle-route.js';

type Routes = typeof APPROVAL_ROUTES;

/**
 * Returns a principal as an approver. The agent service compares its role with the approval's.
 */
export const approverOf = ({ caller, role, agentId, name }: Principal): Approver => ({
  caller,
  role,
  agentId,
  name,
});

/** Serves approvals: tool calls that wait for a decision. */
@Controller()
export class ApprovalsController {
  constructor(@Inject(REQUESTS) private readonly requests: GatewayRequests) {}

  @HandleRoute(APPROVAL_ROUTES.listApprovals)
  list(
    { query: { session: sessionId, root: rootId, ...query } }: RouteInput<Routes['listApprovals']>,
    @CurrentPrincipal() { workspace }: Principal,
  ): Promise<z.output<typeof listApprovals.reply>> {
    return this.requests.request(listApprovals, { workspace, sessionId, rootId, ...query });
  }

  @HandleRoute(APPROVAL_ROUTES.getApproval)
  get(
    { params, query }: RouteInput<Routes['getApproval']>,
    @CurrentPrincipal() { workspace }: Principal,
  ): Promise<z.output<typeof getApproval.reply>> {
    return this.requests.request(getApproval, { workspace, approvalId: params.id, ...query });
  }

  @HandleRoute(APPROVAL_ROUTES.answerApproval)
  answer(
    { params, body }: RouteInput<Routes['answerApproval']>,
    @CurrentPrincipal() principal: Principal,
  ): Promise<z.output<typeof answerApproval.reply>> {
    return this.requests.request(answerApproval, {
      workspace: principal.workspace,
      approvalId: params.id,
      approver: approverOf(principal),
      ...body,
    });
  }
}

/** Returns `approval.answer`, `approval.list` and `approval.get` of the WebSocket. */
export const approvalMethods = (requests: GatewayRequests): RpcMethod[] => [
  defineMethod('approval.answer', ApprovalAnswerParams, async ({ params, principal }): Promise<RpcResult> => {
    const { workspace } = principal;
    const approver = approverOf(principal);
    const { recorded } = await requests.request(answerApproval, { workspace, approver, ...params });
    return { recorded };
  }),
  defineMethod('approval.list', ApprovalsQuery, ({ params, workspace }) => {
    const { session: sessionId, root: rootId, ...query } = params;
    return requests.request(listApprovals, { workspace, sessionId, rootId, ...query });
  }),
  defineMethod('approval.get', ApprovalParams, ({ params, workspace }) =>
    requests.request(getApproval, { workspace, ...params }),
  ),
];
