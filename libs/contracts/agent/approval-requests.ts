import { z } from 'zod';
import { WorkspaceId } from '../log/index.js';
import { defineRequest } from '../messaging/index.js';
import { ApproverRole } from './approval-events.js';

export const MAX_REASON_LENGTH = 2_000;
export const APPROVAL_STATUSES = ['pending', 'granted', 'denied', 'expired', 'voided', 'withdrawn'] as const;
export const ApprovalStatus = z.enum(APPROVAL_STATUSES);
export type ApprovalStatus = z.infer<typeof ApprovalStatus>;

/** An approval as lists show it. */
export const ApprovalView = z.object({
  id: z.uuid(),
  /** `withdrawn`: its turn was cancelled or failed before anybody answered. */
  status: ApprovalStatus,
  sessionId: z.uuid(),
  turnId: z.uuid(),
  /** Of the tool call, as in its `tool_use` frame. */
  callId: z.uuid(),
  agentId: z.string(),
  tool: z.string(),
  input: z.json(),
  digest: z.string(),
  answerBy: ApproverRole,
  requestedAt: z.iso.datetime(),
  expiresAt: z.iso.datetime(),
  escalateTo: ApproverRole.nullable(),
  escalatedAt: z.iso.datetime().nullable(),
  answeredBy: z.string().nullable(),
  /** When it was closed, by an answer or without one. */
  closedAt: z.iso.datetime().nullable(),
  reason: z.string().nullable(),
});
export type ApprovalView = z.infer<typeof ApprovalView>;

/** Who answers. `agentId`: of the agent whose own credential this is, which may never answer. */
export const Approver = z.strictObject({
  caller: z.string().min(1).max(200),
  role: z.enum(['viewer', ...ApproverRole.options]),
  agentId: z.string().nullable(),
});
export type Approver = z.infer<typeof Approver>;

/** Answered once the answer is committed. The same answer of the same caller again is answered as the first time. */
export const answerApproval = defineRequest({
  subject: 'cmd.agent.approval.answer',
  request: z.strictObject({
    workspace: WorkspaceId,
    approvalId: z.uuid(),
    decision: z.enum(['approve', 'deny']),
    reason: z.string().max(MAX_REASON_LENGTH),
    /** What the approver has seen; another digest than the approval's is refused. */
    digest: z.string().max(128).optional(),
    approver: Approver,
  }),
  reply: z.object({
    recorded: z.literal(true),
    approvalId: z.uuid(),
    decision: z.enum(['approve', 'deny']),
    answeredBy: z.string(),
    answeredAt: z.iso.datetime(),
  }),
  timeoutMs: 10_000,
});

export const listApprovals = defineRequest({
  subject: 'cmd.agent.approval.list',
  request: z.strictObject({
    workspace: WorkspaceId,
    status: ApprovalStatus.optional(),
    sessionId: z.uuid().optional(),
    limit: z.int().min(1).max(200),
    cursor: z.string().max(200).optional(),
  }),
  reply: z.object({ approvals: z.array(ApprovalView), nextCursor: z.string().nullable() }),
  timeoutMs: 5_000,
});

export const getApproval = defineRequest({
  subject: 'cmd.agent.approval.get',
  request: z.strictObject({ workspace: WorkspaceId, approvalId: z.uuid() }),
  reply: ApprovalView,
  timeoutMs: 5_000,
});
