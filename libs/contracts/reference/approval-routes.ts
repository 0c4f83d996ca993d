import {
  answerApproval,
  checkApprovalInput,
  getApproval,
  listApprovals,
} from '../agent/approval-requests.js';
import { ApprovalAnswerBody, ApprovalCheckBody, ApprovalsQuery, AtQuery, ById } from '../gateway/index.js';
import { APPROVAL, IDS } from './examples.js';
import { defineRoute } from './http-route.js';

const NO_APPROVAL = { 404: 'there is no approval with this id' };

/** Routes of `/api/v1/approvals`. */
export const APPROVAL_ROUTES = {
  listApprovals: defineRoute({
    method: 'get',
    path: '/api/v1/approvals',
    access: 'approvals:read',
    tag: 'Approvals',
    summary: 'List approvals',
    description: 'Returns the approvals of all sessions, newest first; with `order=asc` oldest first.',
    query: ApprovalsQuery,
    reply: { schema: listApprovals.reply },
    example: { query: { status: 'pending' }, reply: { approvals: [APPROVAL], nextCursor: null } },
  }),
  getApproval: defineRoute({
    method: 'get',
    path: '/api/v1/approvals/{id}',
    access: 'approvals:read',
    tag: 'Approvals',
    summary: 'Get an approval',
    description: 'Returns one approval: the tool, its arguments, its status and the decision.',
    params: ById,
    query: AtQuery,
    reply: { schema: getApproval.reply },
    example: { params: { id: IDS.approval }, reply: APPROVAL },
    problems: NO_APPROVAL,
  }),
  answerApproval: defineRoute({
    method: 'post',
    path: '/api/v1/approvals/{id}/answer',
    access: 'approvals:answer',
    tag: 'Approvals',
    summary: 'Decide an approval',
    description:
      'Approves or denies a tool call. The first decision wins. ' +
      'The same decision sent again by the same caller gets the first response. ' +
      'Send `digest` to be sure that exactly what you have seen will run. ' +
      'With `input` the call is approved with other arguments: the tool runs with them, and the model is told.',
    params: ById,
    body: ApprovalAnswerBody,
    reply: { schema: answerApproval.reply },
    example: {
      params: { id: IDS.approval },
      body: { decision: 'approve', reason: 'read-only request', digest: APPROVAL.digest },
      reply: {
        recorded: true,
        approvalId: IDS.approval,
        decision: 'approve',
        answeredBy: 'operator',
        answeredAt: '2026-11-22T10:14:30.000Z',
      },
    },
    problems: {
      ...NO_APPROVAL,
      400: 'the tool does not take the changed arguments: `problems` has the places as JSON pointers',
      403: 'this credential may not decide the approval, or the policy of the agent denies the changed arguments',
      409: 'the approval is already decided or closed, or the digest is not its own',
    },
  }),
  checkApproval: defineRoute({
    method: 'post',
    path: '/api/v1/approvals/{id}/check',
    access: 'approvals:answer',
    tag: 'Approvals',
    summary: 'Check changed arguments',
    description:
      'Checks arguments for a call that waits, by the schema of its tool and by the policy of its agent, ' +
      'as a decision with `input` would. Records nothing.',
    params: ById,
    body: ApprovalCheckBody,
    reply: { schema: checkApprovalInput.reply },
    example: {
      params: { id: IDS.approval },
      body: { input: { url: 7 } },
      reply: {
        problems: [{ path: '/url', message: 'Invalid input: expected string, received number' }],
        deniedByRule: null,
      },
    },
    problems: { ...NO_APPROVAL, 409: 'the approval is not pending' },
  }),
} as const;
