import type { ApprovalEvent, ChatChange, SessionEvent, SessionEventOf } from '@antiphon/contracts/agent';
import type { JsonValue } from '@antiphon/kernel';
import type { ApprovalCommand } from '../session/approval.decider.js';
import type { SessionCommand } from '../session/session-command.js';

/** Derived ids and event equality. The caller supplies them, because the domain does not hash. */
export interface ReplayNames {
  readonly callIdOf: (sessionId: string, attempt: number, index: number) => string;
  readonly toolDigestOf: (name: string, input: JsonValue) => string;
  readonly isSame: (a: SessionEvent, b: SessionEvent) => boolean;
}

const isApprovalEvent = (event: SessionEvent): event is ApprovalEvent => event.type.startsWith('Approval');

type ApprovalAnswer = Extract<ApprovalEvent, { type: 'ApprovalGranted' | 'ApprovalDenied' }>;

const toAnswerApproval = ({ type, data }: ApprovalAnswer): ApprovalCommand => {
  const { approvalId, answeredBy, answeredByName, role, reason, answeredAt: now } = data;
  const decision = type === 'ApprovalGranted' ? 'approve' : 'deny';
  const edited = 'edited' in data ? data.edited : undefined;
  const answer = { approvalId, decision, answeredBy, answeredByName, role, reason, edited } as const;
  return { type: 'AnswerApproval', data: answer, now };
};

/** Returns the approval command that recorded an event: a request, an answer or a deadline. */
const toApprovalCommand = (event: ApprovalEvent): ApprovalCommand => {
  switch (event.type) {
    case 'ApprovalRequested': {
      const { turnId, name: _name, input: _input, requestedAt: now, ...approval } = event.data;
      return { type: 'RequestApprovals', data: { turnId, approvals: [approval] }, now };
    }
    case 'ApprovalGranted':
    case 'ApprovalDenied':
      return toAnswerApproval(event);
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

const toRecordAnswer = (
  data: SessionEventOf<'ModelCallCompleted'>['data'],
  sessionId: string,
  { callIdOf }: ReplayNames,
): SessionCommand => {
  const { attempt, text, thought, frames, finishReason, usage, costMicroUsd, completedAt: now } = data;
  const spoken = data.firstTextAt === undefined ? {} : { firstTextAt: data.firstTextAt };
  const prompted = data.prompt === undefined ? {} : { prompt: data.prompt };
  const { providerState, keepsProviderState } = data;
  const state = {
    ...(providerState === undefined ? {} : { providerState }),
    ...(keepsProviderState === undefined ? {} : { keepsProviderState }),
  };
  const toolCalls = data.toolCalls.map((call, index) => ({
    ...call,
    callId: callIdOf(sessionId, attempt, index),
  }));
  return {
    type: 'RecordAnswer',
    data: {
      ...{ attempt, text, thought, frames, toolCalls, finishReason, ...state },
      ...{ usage, costMicroUsd, ...spoken, ...prompted },
    },
    now,
  };
};

const toRecordFailure = (data: SessionEventOf<'ModelCallAborted'>['data']): SessionCommand => {
  const { turnId: _turn, step: _step, provider: _provider, model: _model, ...rest } = data;
  const { reservationId: _reservation, abortedAt: now, ...failure } = rest;
  return { type: 'RecordFailure', data: failure, now };
};

type ClientRequest = Extract<
  SessionEvent,
  { type: 'SessionStarted' | 'SessionForked' | 'TurnRequested' | 'TurnCancelRequested' }
>;

const toClientCommand = (event: ClientRequest): SessionCommand => {
  if (event.type === 'SessionStarted') {
    const { startedAt: now, ...data } = event.data;
    return { type: 'StartSession', data, now };
  }
  if (event.type === 'SessionForked') {
    const { forkedAt: now, ...data } = event.data;
    return { type: 'ForkSession', data, now };
  }
  if (event.type === 'TurnRequested') {
    const { requestedAt: now, ...data } = event.data;
    return { type: 'RequestTurn', data, now };
  }
  const { requestedAt: now, ...data } = event.data;
  return { type: 'CancelTurns', data, now };
};

type ToolStart = Extract<
  SessionEvent,
  { type: 'ToolCallClaimed' | 'ToolCallRestarted' | 'ToolCallReleased' }
>;

const isToolStart = (event: SessionEvent): event is ToolStart =>
  event.type === 'ToolCallClaimed' || event.type === 'ToolCallRestarted' || event.type === 'ToolCallReleased';

const toStartTools = (event: ToolStart): SessionCommand => {
  const { turnId, callId } = event.data;
  const data = { turnId, callIds: [callId] };
  switch (event.type) {
    case 'ToolCallClaimed':
      return { type: 'ClaimTools', data, now: '' };
    case 'ToolCallRestarted':
      return { type: 'RestartTools', data, now: event.data.restartedAt };
    case 'ToolCallReleased':
      return { type: 'ReleaseTools', data, now: event.data.releasedAt };
  }
};

const isChatChange = (event: SessionEvent): event is ChatChange => event.type.startsWith('Chat');

const toChatCommand = (event: ChatChange): SessionCommand => {
  switch (event.type) {
    case 'ChatMessageEdited': {
      const { at: now, ...data } = event.data;
      return { type: 'EditMessage', data, now };
    }
    case 'ChatMessageDeleted': {
      const { at: now, ...data } = event.data;
      return { type: 'DeleteMessage', data, now };
    }
    case 'ChatFileAttached': {
      const { at: now, ...data } = event.data;
      return { type: 'AttachFile', data, now };
    }
    case 'ChatFileDetached': {
      const { at: now, ...data } = event.data;
      return { type: 'DetachFile', data, now };
    }
  }
};

const toBlockCommand = ({ data }: SessionEventOf<'TurnBlocked'>): SessionCommand => {
  const { turnId, blockedAt: now, ...blocked } = data;
  return { type: 'BlockTurns', data: { turnIds: [turnId], ...blocked }, now };
};

/** Returns the command of an approval, a wait or a change of a chat; null for any other event. */
const toDecidedCommand = (event: SessionEvent): SessionCommand | null => {
  if (event.type === 'TurnBlocked') return toBlockCommand(event);
  if (isApprovalEvent(event)) return toApprovalCommand(event);
  return isChatChange(event) ? toChatCommand(event) : null;
};

/**
 * Returns the command that recorded an input (a client's request, a response of a model or tool, an
 * approval). Returns null for a decision of the session itself.
 */
export const toCommand = (
  event: SessionEvent,
  sessionId: string,
  names: ReplayNames,
): SessionCommand | null => {
  const decided = toDecidedCommand(event);
  if (decided) return decided;
  switch (event.type) {
    case 'SessionStarted':
    case 'SessionForked':
    case 'TurnRequested':
    case 'TurnCancelRequested':
      return toClientCommand(event);
    case 'ModelCallCompleted':
      return toRecordAnswer(event.data, sessionId, names);
    case 'ModelCallAborted':
      return toRecordFailure(event.data);
    case 'AnswerReturned': {
      const { returnedAt: now, ...data } = event.data;
      return { type: 'ReturnAnswer', data, now };
    }
    case 'MessagesReceived': {
      const { receivedAt: now, ...data } = event.data;
      return { type: 'ReceiveMessages', data, now };
    }
    case 'ToolCallDeferred':
    case 'ToolCallCompleted':
    case 'ToolCallFailed':
    case 'ToolCallUnknown': {
      const { schemaVersion: _, ...outcome } = event;
      return { type: 'RecordToolOutcomes', data: { outcomes: [outcome] }, now: '' };
    }
    default:
      return isToolStart(event) ? toStartTools(event) : null;
  }
};
