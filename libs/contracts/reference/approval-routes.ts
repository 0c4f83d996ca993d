import { z } from 'zod';
import { ApprovalView, answerApproval, listApprovals } from '../agent/approval-requests.js';
import { ApprovalAnswerBody, ApprovalsQuery } from '../gateway/index.js';
import type { HttpRoute } from './http-route.js';

const ById = z.object({ id: z.uuid() });
const NO_APPROVAL = { 404: 'there is no approval with this id' };

/** `/api/v1/approvals`: tool calls that wait for somebody's word. */
export const APPROVAL_ROUTES: readonly HttpRoute[] = [
  {
    method: 'get',
    path: '/api/v1/approvals',
    summary: 'Approvals across all sessions, newest first, by status and session.',
    query: ApprovalsQuery,
    reply: { schema: listApprovals.reply },
  },
  {
    method: 'get',
    path: '/api/v1/approvals/{id}',
    summary: 'One approval: what would be called, with which arguments, and what has become of it.',
    params: ById,
    reply: { schema: ApprovalView },
    problems: NO_APPROVAL,
  },
  {
    method: 'post',
    path: '/api/v1/approvals/{id}/answer',
    summary: 'Answers an approval. The first answer wins; the same one again is answered as the first.',
    params: ById,
    body: ApprovalAnswerBody,
    reply: { schema: answerApproval.reply },
    problems: {
      ...NO_APPROVAL,
      403: 'this credential may not answer it',
      409: 'somebody was first, it is closed, or the digest is not that of the approval',
    },
  },
];
