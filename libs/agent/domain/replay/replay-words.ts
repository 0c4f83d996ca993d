import type { ApprovalEvent, SessionEvent } from '@antiphon/contracts/agent';
import type { ApprovalCommand } from '../session/approval-command.js';

export const isApprovalEvent = (event: SessionEvent): event is ApprovalEvent =>
  event.type.startsWith('Approval');

type Answer = Extract<ApprovalEvent, { type: 'ApprovalGranted' | 'ApprovalDenied' }>;

const answerOf = ({ type, data }: Answer): ApprovalCommand => {
  const { approvalId, answeredBy, role, reason, answeredAt: now } = data;
  const decision = type === 'ApprovalGranted' ? 'approve' : 'deny';
  return { type: 'AnswerApproval', data: { approvalId, decision, answeredBy, role, reason }, now };
};

/** What somebody was asked, or answered, or what time did, as the command that recorded it. */
export const toCommand = (event: ApprovalEvent): ApprovalCommand => {
  switch (event.type) {
    case 'ApprovalRequested': {
      const { turnId, name: _name, input: _input, requestedAt: now, ...approval } = event.data;
      return { type: 'RequestApprovals', data: { turnId, approvals: [approval] }, now };
    }
    case 'ApprovalGranted':
    case 'ApprovalDenied':
      return answerOf(event);
    case 'ApprovalExpired': {
      const { approvalId, expiredAt: now } = event.data;
      return { type: 'ApplyApprovalDeadlines', data: { approvalId }, now };
    }
    case 'ApprovalEscalated': {
      const { approvalId, escalatedAt: now } = event.data;
      return { type: 'ApplyApprovalDeadlines', data: { approvalId }, now };
    }
    case 'ApprovalVoided': {
      const { turnId, callId, digest, voidedAt: now } = event.data;
      return { type: 'VoidApprovals', data: { turnId, voided: [{ callId, digest }] }, now };
    }
  }
};
