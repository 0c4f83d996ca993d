import { APPROVER_ROLES } from '@antiphon/contracts/agent';
import type { Approver, ApproverRole, answerApproval } from '@antiphon/contracts/agent';
import type { z } from 'zod';
import { waitingCall } from '@antiphon/agent-domain';
import type { SessionCommand, WaitingCall } from '@antiphon/agent-domain';
import type { ToolDescription } from '@antiphon/contracts/sandbox';
import type { EventStore } from '@antiphon/event-store';
import { conflict, forbidden, isAppError, isoTime, notFound } from '@antiphon/kernel';
import type { Clock } from '@antiphon/kernel';
import type pg from 'pg';
import { approvalDigestOf, moduleOf } from './approval-digest.js';
import { commitApproval } from './commit-approval.js';
import type { SessionRegistry } from '../sessions/session-registry.js';
import type { SessionLog } from '../sessions/session-log.js';
import type { ApprovalNews } from './approval-timers.js';
import { closeOf, findApproval } from './find-approval.js';
import type { ApprovalEnd, FoundApproval } from './find-approval.js';

export type AnswerApprovalRequest = z.output<typeof answerApproval.request>;
export type AnswerApprovalReply = z.output<typeof answerApproval.reply>;
export type AnswerApproval = (request: AnswerApprovalRequest) => Promise<AnswerApprovalReply>;

export interface AnswerApprovalDeps {
  readonly store: EventStore;
  readonly log: SessionLog;
  readonly clock: Clock;
  readonly tools: {
    /** Reads the sandbox's tools as they are now, not from the cache. */
    freshToolsOf(workspace: string, names: readonly string[]): Promise<readonly ToolDescription[]>;
  };
  /** Called after the commit with each approval that is requested or closed in this process. */
  readonly approvalNews: (news: ApprovalNews) => void;
}

const rankOf = (role: Approver['role']): number => APPROVER_ROLES.indexOf(role as ApproverRole);

/** Throws unless this credential may answer: an agent's own never may, nor a role below those that were asked. */
const judgeApprover = ({ role, agentId }: Approver, asked: readonly ApproverRole[]): ApproverRole => {
  if (agentId !== null)
    throw forbidden('APPROVAL.AGENT_CANNOT_ANSWER', "an agent's own credential cannot answer an approval");
  const least = Math.min(...asked.map(rankOf));
  if (rankOf(role) < least)
    throw forbidden('APPROVAL.ROLE_TOO_LOW', `this approval takes the role ${APPROVER_ROLES[least]}`, {
      data: { role, needed: APPROVER_ROLES[least] },
    });
  return role as ApproverRole;
};

const CLOSED: Readonly<Record<ApprovalEnd['type'], string>> = {
  ApprovalGranted: 'granted',
  ApprovalDenied: 'denied',
  ApprovalExpired: 'expired',
  ApprovalVoided: 'voided',
};
const DECISION_OF = { ApprovalGranted: 'approve', ApprovalDenied: 'deny' } as const;

const replyOf = ({ type, data }: Extract<ApprovalEnd, { type: keyof typeof DECISION_OF }>) => ({
  recorded: true as const,
  approvalId: data.approvalId,
  decision: DECISION_OF[type],
  answeredBy: data.answeredBy,
  answeredAt: data.answeredAt,
});

/** The same answer again is the first one; anything else came too late, and is told by whom and when. */
const settle = (end: ApprovalEnd | null, request: AnswerApprovalRequest): AnswerApprovalReply => {
  const { approvalId, decision, approver } = request;
  if (end === null)
    throw conflict('APPROVAL.CLOSED', 'the turn that asked for this ended before anybody answered', {
      data: { approvalId, status: 'withdrawn' },
    });
  const status = CLOSED[end.type];
  if (end.type === 'ApprovalGranted' || end.type === 'ApprovalDenied') {
    const reply = replyOf(end);
    if (reply.decision === decision && reply.answeredBy === approver.caller) return reply;
    const { answeredBy, answeredAt } = reply;
    throw conflict('APPROVAL.ANSWERED', `this was ${status} by ${answeredBy} at ${answeredAt}`, {
      data: { approvalId, status, answeredBy, answeredAt },
    });
  }
  throw conflict('APPROVAL.CLOSED', end.data.message, { data: { approvalId, status } });
};

/** Makes the use case behind `cmd.agent.approval.answer`: the first answer wins. */
export const createAnswerApproval = (
  services: AnswerApprovalDeps,
  registry: SessionRegistry,
  pool: pg.Pool,
): AnswerApproval => {
  const { store, clock, tools } = services;

  /** Null when nothing can be said now: whoever runs the call looks again. */
  const digestNow = async (
    workspace: string,
    sessionId: string,
    { call: { callId, name, input } }: WaitingCall,
  ): Promise<string | null> => {
    try {
      const described = await tools.freshToolsOf(workspace, [name]);
      const bound = { workspace, sessionId, callId, tool: name, input };
      return approvalDigestOf(bound, moduleOf(described, name));
    } catch (error) {
      if (isAppError(error) && error.kind === 'transient') return null;
      throw error;
    }
  };
  const commandFor = async (
    request: AnswerApprovalRequest,
    sessionId: string,
    waiting: WaitingCall,
    role: ApproverRole,
  ): Promise<SessionCommand> => {
    const { workspace, approvalId, decision, reason, approver } = request;
    const now = isoTime(clock);
    if (decision === 'approve') {
      const digest = await digestNow(workspace, sessionId, waiting);
      const { callId } = waiting.call;
      if (digest !== null && digest !== waiting.approval.digest)
        return {
          type: 'VoidApprovals',
          data: { turnId: waiting.turnId, voided: [{ callId, digest }] },
          now,
        };
    }
    const data = { approvalId, decision, answeredBy: approver.caller, role, reason };
    return { type: 'AnswerApproval', data, now };
  };
  const answer = async (
    request: AnswerApprovalRequest,
    { sessionId, digest, answerBy }: FoundApproval,
  ): Promise<AnswerApprovalReply> => {
    const { workspace, approvalId, approver } = request;
    const { actor } = await registry.requireSession(workspace, sessionId);
    const waiting = waitingCall(actor.fold().state, approvalId);
    const escalated = waiting?.approval.escalated ?? null;
    const role = judgeApprover(approver, escalated === null ? [answerBy] : [answerBy, escalated]);
    if (request.digest !== undefined && request.digest !== digest)
      throw conflict('APPROVAL.DIGEST_MISMATCH', 'what you have seen is not what this approval is about', {
        data: { approvalId, digest },
      });
    if (waiting) {
      const command = await commandFor(request, sessionId, waiting, role);
      await commitApproval(services, registry, { workspace, sessionId }, command);
      const agentId = actor.fold().state.started?.agentId ?? '';
      services.approvalNews({ workspace, sessionId, agentId, approvalId, open: false });
    }
    return settle(await closeOf(store, workspace, sessionId, approvalId), request);
  };

  return async (request) => {
    const { workspace, approvalId, approver } = request;
    if (approver.agentId !== null) judgeApprover(approver, []);
    const found = await findApproval(pool, workspace, approvalId);
    if (!found) throw notFound('APPROVAL.NOT_FOUND', `there is no approval ${approvalId}`);
    return answer(request, found);
  };
};
