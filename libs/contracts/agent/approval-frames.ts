import type { z } from 'zod';
import type { ApprovalEvent } from './approval-events.js';

type Json = z.core.util.JSONType;
/** What an event of an approval shows to a client: the name of each frame and its data. */
export type ApprovalFrame = readonly ['approval' | 'approval_update' | 'tool_result', Json];

const closed = (
  status: string,
  { approvalId, callId, message }: { approvalId: string; callId: string; message: string },
  more: Record<string, Json> = {},
): ApprovalFrame[] => [
  ['approval_update', { approvalId, status, ...more }],
  ['tool_result', { id: callId, content: message, is_error: true }],
];

/** `approval` once, when somebody is asked; then an `approval_update` for whatever becomes of it. */
export const approvalFrames = ({ type, data }: ApprovalEvent): ApprovalFrame[] => {
  switch (type) {
    case 'ApprovalRequested': {
      const { approvalId, callId, name, input, digest, answerBy, expiresAt } = data;
      return [['approval', { approvalId, id: callId, name, input, digest, answerBy, expiresAt }]];
    }
    case 'ApprovalGranted': {
      const { approvalId, answeredBy, reason } = data;
      return [['approval_update', { approvalId, status: 'granted', answeredBy, reason }]];
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
