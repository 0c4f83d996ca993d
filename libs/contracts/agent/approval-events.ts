import { z } from 'zod';
import { event } from './event-shape.js';

/** Roles that may answer an approval, from the least to the most. A viewer never may. */
export const APPROVER_ROLES = ['member', 'operator', 'admin'] as const;
export const ApproverRole = z.enum(APPROVER_ROLES);
export type ApproverRole = z.infer<typeof ApproverRole>;

const ofApproval = { turnId: z.uuid(), callId: z.uuid(), approvalId: z.uuid() };

/**
 * A tool call waits for somebody's word. What is agreed to is exactly this: `digest` binds the workspace, the session,
 * the call, the tool, its module, the arguments and the module's grants.
 */
export const ApprovalRequested = event('ApprovalRequested', {
  ...ofApproval,
  name: z.string(),
  input: z.json(),
  /** SHA-256 (hex) of the module that would run; empty for a tool that the sandbox does not have. */
  moduleDigest: z.string(),
  /** Capabilities of the module, sorted. */
  grants: z.array(z.string()),
  /** SHA-256 (hex) of the RFC 8785 form of `{workspace,session,call,tool,moduleDigest,arguments,grants}`. */
  digest: z.string(),
  /** The least role that may answer. */
  answerBy: ApproverRole,
  requestedAt: z.iso.datetime(),
  expiresAt: z.iso.datetime(),
  /** When somebody else is told, if nobody has answered by then. */
  escalateAt: z.iso.datetime().nullable(),
  escalateTo: ApproverRole.nullable(),
});

const answer = {
  ...ofApproval,
  digest: z.string(),
  /** The credential that answered, and its role. */
  answeredBy: z.string(),
  role: ApproverRole,
  reason: z.string(),
  answeredAt: z.iso.datetime(),
};
/** The one answer: the call may be made, as it was asked for. */
export const ApprovalGranted = event('ApprovalGranted', answer);
/** The one answer: the call is not made. `message` is its result, as the model is told. */
export const ApprovalDenied = event('ApprovalDenied', { ...answer, message: z.string() });
/** Nobody answered in time; `message` is the result of the call, which is not made. */
export const ApprovalExpired = event('ApprovalExpired', {
  ...ofApproval,
  message: z.string(),
  expiredAt: z.iso.datetime(),
});
/** Nobody has answered yet: `to` is asked as well. */
export const ApprovalEscalated = event('ApprovalEscalated', {
  ...ofApproval,
  to: ApproverRole,
  escalatedAt: z.iso.datetime(),
});
/** What was asked for is not what would run any more; `message` is the result of the call, which is not made. */
export const ApprovalVoided = event('ApprovalVoided', {
  ...ofApproval,
  /** The digest of what would run now. */
  digest: z.string(),
  message: z.string(),
  voidedAt: z.iso.datetime(),
});

export const APPROVAL_EVENTS = [
  ApprovalRequested,
  ApprovalGranted,
  ApprovalDenied,
  ApprovalExpired,
  ApprovalEscalated,
  ApprovalVoided,
] as const;
export const ApprovalEvent = z.discriminatedUnion('type', APPROVAL_EVENTS);
export type ApprovalEvent = z.infer<typeof ApprovalEvent>;

/** Temporal's id of the wait for an answer (contract §6). */
export const approvalWorkflowId = (approvalId: string): string => `approval/${approvalId}`;
