import { z } from 'zod';
import { ApprovalStatus, MAX_REASON_LENGTH } from '../agent/approval-requests.js';

/** Body of `POST /api/v1/approvals/:id/answer`. */
export const ApprovalAnswerBody = z.strictObject({
  decision: z.enum(['approve', 'deny']),
  /** What the model is told with a refusal. */
  reason: z.string().max(MAX_REASON_LENGTH).default(''),
  /** The digest that the approver has seen; another one than the approval's is refused. */
  digest: z.string().max(128).optional(),
});
export const ApprovalParams = z.strictObject({ approvalId: z.uuid() });
export const ApprovalAnswerParams = ApprovalAnswerBody.extend({ approvalId: z.uuid() });

/** Query of `GET /api/v1/approvals`, and params of `approval.list`. */
export const ApprovalsQuery = z.strictObject({
  status: ApprovalStatus.optional(),
  session: z.uuid().optional(),
  limit: z.coerce.number().int().min(1).max(200).default(50),
  cursor: z.string().max(200).optional(),
});
