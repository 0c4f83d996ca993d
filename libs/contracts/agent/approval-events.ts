import { z } from 'zod';
import { textOf } from '../log/causes.js';
import type { Cause as CauseOfFact } from '../log/causes.js';
import { Cause, event, eventOfCause } from '../log/stored-event.js';

/** Roles that may decide an approval, from the least to the most privileged. A viewer never may. */
export const APPROVER_ROLES = ['member', 'operator', 'admin'] as const;
export const ApproverRole = z.enum(APPROVER_ROLES);
export type ApproverRole = z.infer<typeof ApproverRole>;

const approvalIds = { turnId: z.uuid(), callId: z.uuid(), approvalId: z.uuid() };

/**
 * A tool call waits for an approval. The approval covers exactly what `digest` binds: the
 * workspace, the session, the call, the tool, its module, the arguments and the module's grants.
 */
export const ApprovalRequested = event('ApprovalRequested', {
  ...approvalIds,
  name: z.string(),
  input: z.json(),
  /**
   * SHA-256 (hex) of the module that would run; empty for a tool that the sandbox does not have.
   */
  moduleDigest: z.string(),
  /** Capabilities of the module, sorted. */
  grants: z.array(z.string()),
  /**
   * SHA-256 (hex) of the RFC 8785 form of
   * `{workspace,session,call,tool,moduleDigest,arguments,grants}`.
   */
  digest: z.string(),
  /** Unified diff of the files that the call would change, within bounds. */
  preview: z.string().optional(),
  /** Least privileged role that may decide. */
  answerBy: ApproverRole,
  requestedAt: z.iso.datetime(),
  expiresAt: z.iso.datetime(),
  /** Time at which the approval escalates to `escalateTo`, unless it is decided before. */
  escalateAt: z.iso.datetime().nullable(),
  escalateTo: ApproverRole.nullable(),
});

const decision = {
  ...approvalIds,
  digest: z.string(),
  /** Credential that decided, and its role. */
  answeredBy: z.string(),
  /** Name of the API key that decided; absent for any other credential. */
  answeredByName: z.string().optional(),
  role: ApproverRole,
  reason: z.string(),
  answeredAt: z.iso.datetime(),
};
/** Arguments that the approver gave a call in the place of the requested ones. */
export const EditedArguments = z.object({
  input: z.json(),
  /** Digest of the call with these arguments, as `digest` of the request is of the requested ones. */
  digest: z.string(),
});
/**
 * The call may be made: exactly as requested, or with the arguments of `edited`. `digest` is that
 * of the request.
 */
export const ApprovalGranted = event('ApprovalGranted', { ...decision, edited: EditedArguments.optional() });
/** The call is not made. The model gets the text of the cause as its result. */
export const ApprovalDenied = eventOfCause('ApprovalDenied', { ...decision, cause: Cause });
/** The approval was not decided in time. The call is not made; the cause is its result. */
export const ApprovalExpired = eventOfCause('ApprovalExpired', {
  ...approvalIds,
  cause: Cause,
  expiredAt: z.iso.datetime(),
});
/** The approval is undecided, and the role `to` is asked as well. */
export const ApprovalEscalated = event('ApprovalEscalated', {
  ...approvalIds,
  to: ApproverRole,
  escalatedAt: z.iso.datetime(),
});
/**
 * The module or its grants changed since the request. The call is not made; the cause is its
 * result.
 */
export const ApprovalVoided = eventOfCause('ApprovalVoided', {
  ...approvalIds,
  /** Digest of the call as it would run now. */
  digest: z.string(),
  cause: Cause,
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

/** Returns the id of the Temporal workflow that waits for an approval. */
export const approvalWorkflowId = (approvalId: string): string => `approval/${approvalId}`;

type Json = z.core.util.JSONType;
/** Name and data of one client frame of an approval. */
export type ApprovalFrame = readonly ['approval' | 'approval_update' | 'tool_result', Json];

const closed = (
  status: string,
  { approvalId, callId, cause }: { approvalId: string; callId: string; cause: CauseOfFact },
  more: Record<string, Json> = {},
): ApprovalFrame[] => [
  ['approval_update', { approvalId, status, ...more }],
  ['tool_result', { id: callId, content: textOf(cause), is_error: true }],
];

/**
 * Returns the client frames of an approval event: `approval` for the request, `approval_update` for
 * each change.
 */
export const approvalFrames = ({ type, data }: ApprovalEvent): ApprovalFrame[] => {
  switch (type) {
    case 'ApprovalRequested': {
      const { approvalId, callId, name, input, digest, preview, answerBy, expiresAt } = data;
      const shown: Record<string, Json> = preview === undefined ? {} : { preview };
      return [['approval', { approvalId, id: callId, name, input, digest, ...shown, answerBy, expiresAt }]];
    }
    case 'ApprovalGranted': {
      const { approvalId, answeredBy, reason, edited } = data;
      const changed: Record<string, Json> = edited ? { edited } : {};
      return [['approval_update', { approvalId, status: 'granted', answeredBy, reason, ...changed }]];
    }
    case 'ApprovalDenied':
      return closed('denied', data, { answeredBy: data.answeredBy, reason: data.reason });
    case 'ApprovalExpired':
      return closed('expired', data);
    case 'ApprovalVoided':
      return closed('voided', data);
    case 'ApprovalEscalated':
      return [['approval_update', { approvalId: data.approvalId, status: 'escalated', to: data.to }]];
  }
};
