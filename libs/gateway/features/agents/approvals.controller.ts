import { Controller, Inject } from '@nestjs/common';
import { WebSocketGateway } from '@nestjs/websockets';
import { answerApproval, checkApprovalInput, getApproval, listApprovals } from '@antiphon/contracts/agent';
import type { ApprovalView, Approver } from '@antiphon/contracts/agent';
import type { Principal } from '@antiphon/contracts/identity';
import { APPROVAL_ROUTES, METHODS, type RouteInput } from '@antiphon/contracts/reference';
import { REQUESTS } from '@antiphon/service-host';
import type { z } from 'zod';
import { CurrentPrincipal } from '../access/access-guard.js';
import { AgentAccess } from '../access/agent-access.js';
import type { GatewayRequests } from '../gateway.ports.js';
import { HandleRoute } from '../route/handle-route.js';
import { HandleMethod } from '../sockets/handle-method.js';
import type { MethodCall } from '../sockets/rpc-method.js';

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

/** Returns the agent whose call waits. An approval has texts of its session. */
const agentsOf = ({ agentId }: ApprovalView) => [agentId];

const list = async (
  requests: GatewayRequests,
  access: AgentAccess,
  principal: Principal,
  { session: sessionId, root: rootId, ...query }: MethodCall<'approval.list'>['params'],
): Promise<z.output<typeof listApprovals.reply>> => {
  const { workspace } = principal;
  const page = await requests.request(listApprovals, { workspace, sessionId, rootId, ...query });
  return { ...page, approvals: await access.filter(principal, page.approvals, agentsOf) };
};

const get = async (
  requests: GatewayRequests,
  access: AgentAccess,
  principal: Principal,
  query: { readonly approvalId: string; readonly at?: number | undefined },
): Promise<z.output<typeof getApproval.reply>> => {
  const { workspace } = principal;
  const approval = await requests.request(getApproval, { workspace, ...query });
  await access.requireAny(principal, agentsOf(approval));
  return approval;
};

/** Serves approvals: tool calls that wait for a decision. */
@Controller()
export class ApprovalsController {
  constructor(
    @Inject(REQUESTS) private readonly requests: GatewayRequests,
    @Inject(AgentAccess) private readonly access: AgentAccess,
  ) {}

  @HandleRoute(APPROVAL_ROUTES.listApprovals)
  list(
    { query }: RouteInput<Routes['listApprovals']>,
    @CurrentPrincipal() principal: Principal,
  ): Promise<z.output<typeof listApprovals.reply>> {
    return list(this.requests, this.access, principal, query);
  }

  @HandleRoute(APPROVAL_ROUTES.getApproval)
  get(
    { params, query }: RouteInput<Routes['getApproval']>,
    @CurrentPrincipal() principal: Principal,
  ): Promise<z.output<typeof getApproval.reply>> {
    return get(this.requests, this.access, principal, { approvalId: params.id, ...query });
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

  @HandleRoute(APPROVAL_ROUTES.checkApproval)
  check(
    { params, body }: RouteInput<Routes['checkApproval']>,
    @CurrentPrincipal() principal: Principal,
  ): Promise<z.output<typeof checkApprovalInput.reply>> {
    return this.requests.request(checkApprovalInput, {
      workspace: principal.workspace,
      approvalId: params.id,
      approver: approverOf(principal),
      ...body,
    });
  }
}

/** Serves approvals over the WebSocket. */

@WebSocketGateway()
export class ApprovalMethods {
  constructor(
    @Inject(REQUESTS) private readonly requests: GatewayRequests,
    @Inject(AgentAccess) private readonly access: AgentAccess,
  ) {}

  @HandleMethod(METHODS['approval.answer'])
  async answer({ params, workspace, principal }: MethodCall<'approval.answer'>) {
    const answer = { workspace, approver: approverOf(principal), ...params };
    const { recorded } = await this.requests.request(answerApproval, answer);
    return { recorded };
  }

  @HandleMethod(METHODS['approval.list'])
  list({ params, principal }: MethodCall<'approval.list'>) {
    return list(this.requests, this.access, principal, params);
  }

  @HandleMethod(METHODS['approval.get'])
  get({ params, principal }: MethodCall<'approval.get'>) {
    return get(this.requests, this.access, principal, params);
  }
}
