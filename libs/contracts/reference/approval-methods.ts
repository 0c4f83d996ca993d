import { z } from 'zod';
import { ApprovalView, listApprovals } from '../agent/approval-requests.js';
import { ApproverRole } from '../agent/approval-events.js';
import { ApprovalAnswerParams, ApprovalParams, ApprovalsQuery } from '../gateway/index.js';
import type { SocketMethod } from './socket-methods.js';

/** `approval.*` on `/ws`. */
export const APPROVAL_METHODS: readonly SocketMethod[] = [
  {
    name: 'approval.answer',
    summary:
      'Answers an approval. The first answer wins; a later one is told by whom and when it was answered.',
    params: ApprovalAnswerParams,
    answer: z.object({ recorded: z.literal(true) }),
  },
  {
    name: 'approval.list',
    summary: 'Approvals across all sessions, newest first.',
    params: ApprovalsQuery,
    answer: listApprovals.reply,
  },
  { name: 'approval.get', summary: 'One approval.', params: ApprovalParams, answer: ApprovalView },
];

export const APPROVAL_FRAMES = {
  approval: {
    summary: 'Somebody is asked whether a tool may be called; the turn waits.',
    data: z.object({
      approvalId: z.uuid(),
      id: z.string(),
      name: z.string(),
      input: z.json(),
      digest: z.string(),
      answerBy: ApproverRole,
      expiresAt: z.iso.datetime(),
    }),
  },
  approval_update: {
    summary: 'What has become of it: who answered, or who is asked as well.',
    data: z.object({
      approvalId: z.uuid(),
      status: z.enum(['granted', 'denied', 'expired', 'voided', 'escalated']),
      answeredBy: z.string().optional(),
      reason: z.string().optional(),
      to: ApproverRole.optional(),
    }),
  },
} as const;
