import { textOf } from '@antiphon/contracts/causes';
import { Controller, Inject } from '@nestjs/common';
import type { SessionLog } from '../sessions/session-log.js';
import { CLOCK, DATABASE_POOL, createToken } from '@antiphon/service-host';
import { AGENT_STORE, AgentDirectory } from '@antiphon/agents-features';
import type { PolicyAgents } from '@antiphon/agents-features';
import { ON_APPROVAL_CHANGE } from './approval-timers.js';
import { SESSION_LOG } from '../sessions/session-log.js';
import { SessionRegistry } from '../sessions/session-registry.js';
import type pg from 'pg';
import { answerApproval } from '@antiphon/contracts/agent';
import type { ApproverRole, EditedInput } from '@antiphon/contracts/agent';
import type { z } from 'zod';
import { waitingCall } from '@antiphon/conversation-domain';
import type { SessionCommand, WaitingCall } from '@antiphon/conversation-domain';
import type { EventStore } from '@antiphon/event-store';
import { digestOf } from '@antiphon/event-store';
import { conflict, invalid, isAppError, isoTime, notFound, toStorableJson } from '@antiphon/kernel';
import type { Clock, JsonValue } from '@antiphon/kernel';
import { HandleRequest } from '@antiphon/messaging';
import { refuseAgents, requireApprover } from './approver.js';
import { checkEdit, requireAllowed } from './edit-checks.js';
import { approvalDigestOf, moduleOf } from './approval-rules.js';
import { commitApproval, findApproval, readApprovalEnd } from './approval-store.js';
import type { ApprovalEnd, FoundApproval } from './approval-store.js';
import type { OnApprovalChange } from './approval-timers.js';
import type { ToolDescription } from '@antiphon/contracts/sandbox';

type AnswerApprovalRequest = z.output<typeof answerApproval.request>;
type AnswerApprovalReply = z.output<typeof answerApproval.reply>;

export interface FreshTools {
  /** Reads the sandbox's tools as they are now, not from the cache. */
  freshToolsOf(workspace: string, names: readonly string[]): Promise<readonly ToolDescription[]>;
}
export const FRESH_TOOLS = createToken<FreshTools>('FRESH_TOOLS');

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
  ...('edited' in data && data.edited ? { approvedDigest: data.edited.digest } : {}),
});

/** Returns the digest of changed arguments; empty for those of the request. */
const editDigestOf = (input: JsonValue | undefined): string =>
  input === undefined ? '' : digestOf({ input });

/** Returns true for an answer with the recorded decision, arguments and caller. */
const isRepeat = (
  { type, data }: Extract<ApprovalEnd, { type: keyof typeof DECISION_OF }>,
  { decision, approver }: AnswerApprovalRequest,
  edited: JsonValue | undefined,
): boolean =>
  DECISION_OF[type] === decision &&
  data.answeredBy === approver.caller &&
  editDigestOf('edited' in data ? data.edited?.input : undefined) === editDigestOf(edited);

/**
 * Returns the recorded answer if it equals the request. Throws a conflict with the recorded end
 * else.
 */
const replyFor = (
  end: ApprovalEnd | null,
  request: AnswerApprovalRequest,
  edited: JsonValue | undefined,
): AnswerApprovalReply => {
  const { approvalId } = request;
  if (end === null)
    throw conflict('APPROVAL.CLOSED', 'the turn that requested this approval ended before an answer', {
      data: { approvalId, status: 'withdrawn' },
    });
  const status = END_STATUS[end.type];
  if (end.type === 'ApprovalGranted' || end.type === 'ApprovalDenied') {
    const reply = toReply(end);
    if (isRepeat(end, request, edited)) return reply;
    const { answeredBy, answeredAt } = reply;
    throw conflict('APPROVAL.ANSWERED', `this was ${status} by ${answeredBy} at ${answeredAt}`, {
      data: { approvalId, status, answeredBy, answeredAt },
    });
  }
  throw conflict('APPROVAL.CLOSED', textOf(end.data.cause), { data: { approvalId, status } });
};

/** An answer to a call that waits. */
interface WaitingAnswer {
  readonly sessionId: string;
  readonly agentId: string;
  readonly waiting: WaitingCall;
  readonly role: ApproverRole;
  readonly edited: JsonValue | undefined;
}

/** Returns the changed arguments of an answer; undefined for those of the request. */
const editOf = ({ input }: AnswerApprovalRequest, asked: JsonValue): JsonValue | undefined => {
  if (input === undefined) return undefined;
  const storable = toStorableJson(input as JsonValue);
  return editDigestOf(storable) === editDigestOf(asked) ? undefined : storable;
};

/** Grants or denies approvals: the first answer wins, and a repeated one gets the same reply. */
@Controller()
export class AnswerApproval {
  constructor(
    @Inject(SessionRegistry) readonly registry: SessionRegistry,
    @Inject(SESSION_LOG) readonly log: SessionLog,
    @Inject(FRESH_TOOLS) private readonly tools: FreshTools,
    @Inject(AgentDirectory) private readonly agents: PolicyAgents,
    @Inject(ON_APPROVAL_CHANGE) private readonly onApprovalChange: OnApprovalChange,
    @Inject(AGENT_STORE) private readonly store: EventStore,
    @Inject(DATABASE_POOL) private readonly pool: pg.Pool,
    @Inject(CLOCK) private readonly clock: Clock,
  ) {}

  @HandleRequest(answerApproval)
  async handle(request: AnswerApprovalRequest): Promise<AnswerApprovalReply> {
    const { workspace, approvalId, approver } = request;
    refuseAgents(approver);
    if (request.input !== undefined && request.decision !== 'approve')
      throw invalid('APPROVAL.EDIT_WITH_DENIAL', 'a denied call gets no arguments: leave `input` out');
    const found = await findApproval(this.pool, workspace, approvalId);
    if (!found) throw notFound('APPROVAL.NOT_FOUND', `there is no approval ${approvalId}`);
    return this.answer(request, found);
  }

  private async answer(
    request: AnswerApprovalRequest,
    { sessionId, input, digest, answerBy }: FoundApproval,
  ): Promise<AnswerApprovalReply> {
    const { registry, store } = this;
    const { workspace, approvalId, approver } = request;
    const { actor } = await registry.requireSession(workspace, sessionId);
    const { started } = actor.fold().state;
    const waiting = waitingCall(actor.fold().state, approvalId);
    const role = requireApprover(approver, answerBy, waiting?.approval ?? null);
    if (request.digest !== undefined && request.digest !== digest)
      throw conflict('APPROVAL.DIGEST_MISMATCH', 'what you have seen is not what this approval is about', {
        data: { approvalId, digest },
      });
    const edited = editOf(request, input);
    if (waiting) {
      const agentId = started?.agentId ?? '';
      const command = await this.toCommand(request, { sessionId, agentId, waiting, role, edited });
      await commitApproval(this, { workspace, sessionId }, command);
      this.onApprovalChange({ workspace, sessionId, agentId, approvalId, open: false });
    }
    return replyFor(await readApprovalEnd(store, workspace, sessionId, approvalId), request, edited);
  }

  /**
   * Returns the answer's command. Voids the approval instead if the call changed since the request.
   */
  private async toCommand(
    request: AnswerApprovalRequest,
    { sessionId, agentId, waiting, role, edited }: WaitingAnswer,
  ): Promise<SessionCommand> {
    const { workspace, approvalId, decision, reason, approver } = request;
    const now = isoTime(this.clock);
    const { callId, name, input } = waiting.call;
    const answer = { approvalId, decision, role, reason };
    const { caller: answeredBy, name: keyName } = approver;
    const data = { ...answer, answeredBy, answeredByName: keyName ?? undefined };
    if (decision === 'deny') return { type: 'AnswerApproval', data, now };
    const tools = await this.toolsNow(workspace, name, edited !== undefined);
    const bound = { workspace, sessionId, callId, tool: name };
    const digest = tools && approvalDigestOf({ ...bound, input }, moduleOf(tools, name));
    if (digest !== null && digest !== waiting.approval.digest)
      return { type: 'VoidApprovals', data: { turnId: waiting.turnId, voided: [{ callId, digest }] }, now };
    if (edited === undefined || tools === null) return { type: 'AnswerApproval', data, now };
    const call = { workspace, agentId, call: { name }, input: edited, tools };
    requireAllowed(await checkEdit(this.agents, call));
    const approved = approvalDigestOf({ ...bound, input: edited }, moduleOf(tools, name));
    const change = { input: edited as EditedInput, digest: approved };
    return { type: 'AnswerApproval', data: { ...data, edited: change }, now };
  }

  /**
   * Returns the tools as they are now; null while the sandbox is unreachable. Then the driver
   * compares the digest before the call runs. Changed arguments need the schema, so it throws.
   */
  private async toolsNow(
    workspace: string,
    name: string,
    isNeeded: boolean,
  ): Promise<readonly ToolDescription[] | null> {
    try {
      return await this.tools.freshToolsOf(workspace, [name]);
    } catch (error) {
      if (!isNeeded && isAppError(error) && error.kind === 'transient') return null;
      throw error;
    }
  }
}
