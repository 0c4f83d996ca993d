import type { SessionEvent, SessionEventOf } from '@antiphon/contracts/agent';
import { isApprovalEvent, toCommand } from './replay-words.js';
import type { SessionCommand } from '../session/session-command.js';
import type { ReplayNames } from './replay-names.js';

type Completed = SessionEventOf<'ModelCallCompleted'>['data'];
type Aborted = SessionEventOf<'ModelCallAborted'>['data'];

const answerOf = (data: Completed, sessionId: string, { callIdOf }: ReplayNames): SessionCommand => {
  const { attempt, text, thought, frames, finishReason, usage, costMicroUsd, completedAt: now } = data;
  const toolCalls = data.toolCalls.map((call, index) => ({
    ...call,
    callId: callIdOf(sessionId, attempt, index),
  }));
  return {
    type: 'RecordAnswer',
    data: { attempt, text, thought, frames, toolCalls, finishReason, usage, costMicroUsd },
    now,
  };
};

const failureOf = (data: Aborted): SessionCommand => {
  const { attempt, reason, message, dispatched, retryable, text, thought, frames, usage } = data;
  return {
    type: 'RecordFailure',
    data: { attempt, reason, message, dispatched, retryable, text, thought, frames, usage },
    now: data.abortedAt,
  };
};

type Asked = Extract<
  SessionEvent,
  { type: 'SessionStarted' | 'SessionForked' | 'TurnRequested' | 'TurnCancelRequested' }
>;

const askedOf = (event: Asked): SessionCommand => {
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

const claimOf = ({ turnId, callId }: SessionEventOf<'ToolCallClaimed'>['data']): SessionCommand => ({
  type: 'ClaimTools',
  data: { turnId, callIds: [callId] },
  now: '',
});

/** What came from outside as the command that recorded it; null for what the session itself decided. */
export const inputOf = (
  event: SessionEvent,
  sessionId: string,
  names: ReplayNames,
): SessionCommand | null => {
  if (isApprovalEvent(event)) return toCommand(event);
  switch (event.type) {
    case 'SessionStarted':
    case 'SessionForked':
    case 'TurnRequested':
    case 'TurnCancelRequested':
      return askedOf(event);
    case 'ModelCallCompleted':
      return answerOf(event.data, sessionId, names);
    case 'ModelCallAborted':
      return failureOf(event.data);
    case 'ToolCallClaimed':
      return claimOf(event.data);
    case 'ToolCallDeferred':
    case 'ToolCallCompleted':
    case 'ToolCallFailed':
    case 'ToolCallUnknown': {
      const { schemaVersion: _, ...outcome } = event;
      return { type: 'RecordToolOutcomes', data: { outcomes: [outcome] }, now: '' };
    }
    default:
      return null;
  }
};
