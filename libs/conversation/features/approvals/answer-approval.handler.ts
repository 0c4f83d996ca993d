import { textOf } from '@antiphon/contracts/causes';
import { Controller, Inject } from '@nestjs/common';
import type { SessionLog } from '../sessions/session-log.js';
import { CLOCK, DATABASE_POOL, createToken } from '@antiphon/service-host';
import { AGENT_STORE } from '@antiphon/agents-features';
import { ON_APPROVAL_CHANGE } from './approval-timers.js';
import { SESSION_LOG } from '../sessions/session-log.js';
import { SessionRegistry } from '../sessions/session-registry.js';
import type pg from 'pg';
import { APPROVER_ROLES, answerApproval } from '@antiphon/contracts/agent';
import type { Approver, ApproverRole } from '@antiphon/contracts/agent';
import type { z } from 'zod';
import { waitingCall } from '@antiphon/conversation-domain';
import type { SessionCommand, WaitingCall } from '@antiphon/conversation-domain';
import type { EventStore } from '@antiphon/event-store';
import { conflict, forbidden, isAppError, isoTime, notFound } from '@antiphon/kernel';
import type { Clock } from '@antiphon/kernel';
import { HandleRequest } from '@antiphon/messaging';
import { approvalDigestOf, moduleOf } from './approval-rules.js';
import { commitApproval, findApproval, readApprovalEnd } from './approval-store.js';
import type { ApprovalEnd, FoundApproval } from './approval-store.js';
import type { OnApprovalChange } from './approval-timers.js';
import type { ToolDescription } from '@antiphon/contracts/sandbox';

type AnswerApprovalRequest = z.output<typeof answerApproval.request>;
type AnswerApprovalReply = z.output<typeof answerApproval.reply>;

interface FreshTools {
  /** Reads the sandbox's tools as they are now, not from the cache. */
  freshToolsOf(workspace: string, names: readonly string[]): Promise<readonly ToolDescription[]>;
}
export const FRESH_TOOLS = createToken<FreshTools>('FRESH_TOOLS');

const rankOf = (role: Approver['role']): number => APPROVER_ROLES.indexOf(role as ApproverRole);

/**
 * Returns the approver's role. Throws for an agent's credential, and below the lowest allowed role.
 */
const requireApprover = ({ role, agentId }: Approver, allowed: readonly ApproverRole[]): ApproverRole => {
  if (agentId !== null)
    throw forbidden('APPROVAL.AGENT_CANNOT_ANSWER', "an agent's own credential cannot answer an approval");
  const least = Math.min(...allowed.map(rankOf));
  if (rankOf(role) < least)
    throw forbidden('APPROVAL.ROLE_TOO_LOW', `this approval takes the role ${APPROVER_ROLES[least]}`, {
      data: { role, needed: APPROVER_ROLES[least] },
    });
  return role as ApproverRole;
};

const END_STATUS: Readonly<Record<ApprovalEnd['type'], string>> = {
  ApprovalGranted: 'granted',
  ApprovalDenied: 'denied',
  ApprovalExpired: 'expired',
  ApprovalVoided: 'voided',
};
const DECISION_OF = { ApprovalGranted: 'approve', ApprovalDenied: 'deny' } as const;

const toReply = ({ type, data }: Extract<ApprovalEnd, { type: keyof typeof DECISION_OF }>) => ({
  recorded: true as const,
  approvalId: data.approvalId,
  decision: DECISION_OF[type],
  answeredBy: data.answeredBy,
  answeredAt: data.answeredAt,
});

/**
 * Returns the recorded answer if it equals the request. Throws a conflict with the recorded end
 * else.
 */
const replyFor = (end: ApprovalEnd | null, request: AnswerApprovalRequest): AnswerApprovalReply => {
  const { approvalId, decision, approver } = request;
  if (end === null)
    throw conflict('APPROVAL.CLOSED', 'the turn that requested this approval ended before an answer', {
      data: { approvalId, status: 'withdrawn' },
    });
  const status = END_STATUS[end.type];
  if (end.type === 'ApprovalGranted' || end.type === 'ApprovalDenied') {
    const reply = toReply(end);
    if (reply.decision === decision && reply.answeredBy === approver.caller) return reply;
    const { answeredBy, answeredAt } = reply;
    throw conflict('APPROVAL.ANSWERED', `this was ${status} by ${answeredBy} at ${answeredAt}`, {
      data: { approvalId, status, answeredBy, answeredAt },
    });
  }
  throw conflict('APPROVAL.CLOSED', textOf(end.data.cause), { data: { approvalId, status } });
};

/** Grants or denies approvals: the first answer wins, and a repeated one gets the same reply. */
@Controller()
export class AnswerApproval {
  constructor(
    @Inject(SessionRegistry) readonly registry: SessionRegistry,
    @Inject(SESSION_LOG) readonly log: SessionLog,
    @Inject(FRESH_TOOLS) private readonly tools: FreshTools,
    @Inject(ON_APPROVAL_CHANGE) private readonly onApprovalChange: OnApprovalChange,
    @Inject(AGENT_STORE) private readonly store: EventStore,
    @Inject(DATABASE_POOL) private readonly pool: pg.Pool,
    @Inject(CLOCK) private readonly clock: Clock,
  ) {}

  @HandleRequest(answerApproval)
  async handle(request: AnswerApprovalRequest): Promise<AnswerApprovalReply> {
    const { workspace, approvalId, approver } = request;
    if (approver.agentId !== null) requireApprover(approver, []);
    const found = await findApproval(this.pool, workspace, approvalId);
    if (!found) throw notFound('APPROVAL.NOT_FOUND', `there is no approval ${approvalId}`);
    return this.answer(request, found);
  }

  private async answer(
    request: AnswerApprovalRequest,
    { sessionId, digest, answerBy }: FoundApproval,
  ): Promise<AnswerApprovalReply> {
    const { registry, store } = this;
    const { workspace, approvalId, approver } = request;
    const { actor } = await registry.requireSession(workspace, sessionId);
    const waiting = waitingCall(actor.fold().state, approvalId);
    const escalated = waiting?.approval.escalated ?? null;
    const role = requireApprover(approver, escalated === null ? [answerBy] : [answerBy, escalated]);
    if (request.digest !== undefined && request.digest !== digest)
      throw conflict('APPROVAL.DIGEST_MISMATCH', 'what you have seen is not what this approval is about', {
        data: { approvalId, digest },
      });
    if (waiting) {
      const command = await this.toCommand(request, sessionId, waiting, role);
      await commitApproval(this, { workspace, sessionId }, command);
      const agentId = actor.fold().state.started?.agentId ?? '';
      this.onApprovalChange({ workspace, sessionId, agentId, approvalId, open: false });
    }
    return replyFor(await readApprovalEnd(store, workspace, sessionId, approvalId), request);
  }

  /**
   * Returns the answer's command. Voids the approval instead if the call changed since the request.
   */
  private async toCommand(
    request: AnswerApprovalRequest,
    sessionId: string,
    waiting: WaitingCall,
    role: ApproverRole,
  ): Promise<SessionCommand> {
    const { workspace, approvalId, decision, reason, approver } = request;
    const now = isoTime(this.clock);
    if (decision === 'approve') {
      const digest = await this.currentDigest(workspace, sessionId, waiting);
      const { callId } = waiting.call;
      if (digest !== null && digest !== waiting.approval.digest)
        return {
          type: 'VoidApprovals',
          data: { turnId: waiting.turnId, voided: [{ callId, digest }] },
          now,
        };
    }
    const { caller: answeredBy, name } = approver;
    const data = { approvalId, decision, answeredBy, answeredByName: name ?? undefined, role, reason };
    return { type: 'AnswerApproval', data, now };
  }

  /** Returns the digest of the call as it would run now; null while the sandbox is unreachable. */
  private async currentDigest(
    workspace: string,
    sessionId: string,
    { call: { callId, name, input } }: WaitingCall,
  ): Promise<string | null> {
    try {
      const described = await this.tools.freshToolsOf(workspace, [name]);
      const bound = { workspace, sessionId, callId, tool: name, input };
      return approvalDigestOf(bound, moduleOf(described, name));
    } catch (error) {
      // The driver compares the digest again before the call runs.
      if (isAppError(error) && error.kind === 'transient') return null;
      throw error;
    }
  }
}
