import type { SessionEventOf, ToolCall } from '@antiphon/contracts/agent';
import type { ToolOutcome } from './session-command.js';

// Events of a session for specs, with defaults for all fields that a test does not set.
export const NOW = '2026-11-21T12:00:00.000Z';
export const TURN = 't-1';
const schemaVersion = 1;

export const started = (agentId = 'main'): SessionEventOf<'SessionStarted'> => ({
  type: 'SessionStarted',
  schemaVersion,
  data: { sessionId: 's-1', sessionKey: `${agentId}:ws:a:p`, agentId, startedAt: NOW },
});

export const requested = (turnId: string, content = 'hello'): SessionEventOf<'TurnRequested'> => ({
  type: 'TurnRequested',
  schemaVersion,
  data: { turnId, content, requestedAt: NOW },
});

export const cancelRequested = (turnId: string): SessionEventOf<'TurnCancelRequested'> => ({
  type: 'TurnCancelRequested',
  schemaVersion,
  data: { turnId, requestedAt: NOW },
});

type Started = SessionEventOf<'ModelCallStarted'>;
export const begun = (turnId: string, attempt: number, more: Partial<Started['data']> = {}): Started => ({
  type: 'ModelCallStarted',
  schemaVersion,
  data: {
    turnId,
    attempt,
    step: 1,
    tryNumber: 1,
    provider: 'first',
    model: 'm',
    reservationId: `r-${attempt}`,
    startedAt: NOW,
    ...more,
  },
});

export const ANSWER = {
  text: 'hi there',
  thought: '',
  frames: [{ kind: 'text' as const, length: 8 }],
  toolCalls: [],
  finishReason: 'stop' as const,
  usage: { inputTokens: 10, outputTokens: 2, estimated: false },
  costMicroUsd: null,
};

export const answered = (
  turnId: string,
  attempt: number,
  toolCalls: ToolCall[] = [],
  text = ANSWER.text,
): SessionEventOf<'ModelCallCompleted'> => ({
  type: 'ModelCallCompleted',
  schemaVersion,
  data: {
    ...ANSWER,
    turnId,
    attempt,
    step: 1,
    provider: 'first',
    model: 'm',
    reservationId: `r-${attempt}`,
    toolCalls,
    text,
    completedAt: NOW,
  },
});

type Aborted = SessionEventOf<'ModelCallAborted'>;
export const aborted = (
  turnId: string,
  attempt: number,
  reason: Aborted['data']['reason'],
  more: Partial<Aborted['data']> = {},
): Aborted => ({
  type: 'ModelCallAborted',
  schemaVersion: 2,
  data: {
    turnId,
    attempt,
    step: 1,
    provider: 'first',
    model: 'm',
    reservationId: `r-${attempt}`,
    reason,
    cause: { kind: 'text', text: reason.replace('_', ' ') },
    dispatched: true,
    retryable: true,
    text: '',
    thought: '',
    frames: [],
    usage: null,
    abortedAt: NOW,
    ...more,
  },
});

type Requested = SessionEventOf<'ToolCallRequested'>;
export const toolRequested = (
  turnId: string,
  callId: string,
  more: Partial<Requested['data']> = {},
): Requested => ({
  type: 'ToolCallRequested',
  schemaVersion,
  data: {
    turnId,
    callId,
    attempt: 1,
    name: 'echo',
    input: { a: 1 },
    digest: 'd',
    idempotencyKey: callId,
    idempotent: false,
    claims: more.idempotent !== true,
    ...more,
  },
});

export const toolClaimed = (
  turnId: string,
  callId: string,
  tryNumber = 1,
): SessionEventOf<'ToolCallClaimed'> => ({
  type: 'ToolCallClaimed',
  schemaVersion,
  data: { turnId, callId, tryNumber },
});

export const toolRestarted = (
  turnId: string,
  callId: string,
  lostDrivers: number,
): SessionEventOf<'ToolCallRestarted'> => ({
  type: 'ToolCallRestarted',
  schemaVersion,
  data: { turnId, callId, lostDrivers, restartedAt: NOW },
});

export const toolReleased = (turnId: string, callId: string): SessionEventOf<'ToolCallReleased'> => ({
  type: 'ToolCallReleased',
  schemaVersion,
  data: { turnId, callId, releasedAt: NOW },
});

export const outcome = (turnId: string, callId: string, content: string): ToolOutcome => ({
  type: 'ToolCallCompleted',
  data: { turnId, callId, content, isError: false, moduleDigest: 'd', durationMs: 1 },
});

export const toolAnswered = (
  turnId: string,
  callId: string,
  content: string,
): SessionEventOf<'ToolCallCompleted'> => ({
  type: 'ToolCallCompleted',
  schemaVersion,
  data: { turnId, callId, content, isError: false, moduleDigest: 'd', durationMs: 1 },
});

/** Returns an approval request that escalates after half an hour and expires after a day. */
export const approvalOf = (callId: string) => ({
  callId,
  approvalId: `approval of ${callId}`,
  moduleDigest: 'm',
  grants: [],
  digest: `digest of ${callId}`,
  answerBy: 'operator' as const,
  expiresAt: '2026-11-22T12:00:00.000Z',
  escalateAt: '2026-11-21T12:30:00.000Z',
  escalateTo: 'admin' as const,
});

export const approvalRequested = (turnId: string, callId: string): SessionEventOf<'ApprovalRequested'> => ({
  type: 'ApprovalRequested',
  schemaVersion,
  data: { ...approvalOf(callId), turnId, name: 'echo', input: { a: 1 }, requestedAt: NOW },
});

export const approvalGranted = (turnId: string, callId: string): SessionEventOf<'ApprovalGranted'> => {
  const { approvalId, digest } = approvalOf(callId);
  const answer = { answeredBy: 'ada', role: 'operator' as const, reason: '', answeredAt: NOW };
  return { type: 'ApprovalGranted', schemaVersion, data: { turnId, callId, approvalId, digest, ...answer } };
};
