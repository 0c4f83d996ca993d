import type { SessionEvent, SessionEventOf, ToolCall } from '@antiphon/contracts/agent';
import { assertNever, exhausted, rejected } from '@antiphon/kernel';
import type { Decider } from '@antiphon/kernel';
import { decideApproval, isApprovalCommand } from './approval.decider.js';
import { decideChatChange, isChatCommand } from './chat.decider.js';
import { evolveSession } from './evolve-session.js';
import { decideMessage, isMessageCommand } from './message.decider.js';
import type {
  BeginModelCall,
  BlockTurns,
  CancelTurns,
  EndTurn,
  ForkSession,
  RecordAnswer,
  RecordFailure,
  RequestTurn,
  SessionCommand,
  StartSession,
} from './session-command.js';
import { initialSession } from './session-state.js';
import { decideToolCalls, isToolCommand } from './tool-call.decider.js';
import { isBlockedBy } from './session-state.js';
import type { BlockedBy, OpenCall, OpenTurn, RecentWindow, SessionState } from './session-state.js';

/** Maximum number of turns behind the open one. */
export const MAX_QUEUED_TURNS = 100;

const schemaVersion = 1;

const startSession = ({ data, now }: StartSession, state: SessionState): SessionEvent[] => {
  if (state.started) throw rejected('SESSION.STARTED', `session ${data.sessionId} has started already`);
  return [{ type: 'SessionStarted', schemaVersion, data: { ...data, startedAt: now } }];
};

const forkSession = ({ data, now }: ForkSession, state: SessionState): SessionEvent[] => {
  if (!state.started) throw rejected('SESSION.NOT_STARTED', 'the session has not started');
  if (state.fork || state.open || state.attempt > 0)
    throw rejected('SESSION.STARTED', `session ${data.sessionId} has begun already`);
  return [{ type: 'SessionForked', schemaVersion, data: { ...data, forkedAt: now } }];
};

const turnBlocked = (
  turnId: string,
  { code, cause, until }: BlockedBy,
  blockedAt: string,
): SessionEventOf<'TurnBlocked'> => ({
  ...{ type: 'TurnBlocked', schemaVersion, data: { turnId, code, cause, until, blockedAt } },
});

const requestTurn = ({ data, now }: RequestTurn, state: SessionState): SessionEvent[] => {
  if (!state.started) throw rejected('SESSION.NOT_STARTED', 'the session has not started');
  if (state.queue.length >= MAX_QUEUED_TURNS)
    throw exhausted('SESSION.QUEUE_FULL', `${MAX_QUEUED_TURNS} turns of this session are waiting already`);
  const { chain, role, caller, files = [], ...turn } = data;
  const sent = files.length > 0 ? { files: [...files] } : {};
  const led = chain && chain.length > 0 ? { chain } : {};
  const prompt = role ? { role } : {};
  const by = caller === undefined ? {} : { caller };
  const requested = { ...turn, ...sent, ...led, ...prompt, ...by, requestedAt: now };
  // A turn behind one that waits waits for the same reason.
  const { blocked } = state.open ?? {};
  return [
    { type: 'TurnRequested', schemaVersion, data: requested },
    ...(blocked ? [turnBlocked(turn.turnId, blocked, now)] : []),
  ];
};

const blockTurns = ({ data, now }: BlockTurns, { open, queue }: SessionState): SessionEvent[] => {
  const { turnIds, ...blocked } = data;
  return [...(open ? [open] : []), ...queue]
    .filter((turn) => turnIds.includes(turn.turnId) && !isBlockedBy(turn, blocked))
    .map(({ turnId }) => turnBlocked(turnId, blocked, now));
};

const cancelTurns = ({ data, now }: CancelTurns, { open, queue }: SessionState): SessionEvent[] =>
  [...(open ? [open] : []), ...queue]
    .filter((turn) => !turn.cancelRequested && (data.turnId ?? turn.turnId) === turn.turnId)
    .map(({ turnId }) => ({
      type: 'TurnCancelRequested',
      schemaVersion,
      data: { turnId, requestedAt: now },
    }));

const openTurn = (state: SessionState, turnId: string): OpenTurn | null =>
  state.open?.turnId === turnId ? state.open : null;

const beginCall = ({ data, now }: BeginModelCall, state: SessionState): SessionEvent[] => {
  const turn = openTurn(state, data.turnId);
  // No second call while one is open, and none after a cancel.
  if (!turn || turn.call || turn.cancelRequested) return [];
  return [
    {
      type: 'ModelCallStarted',
      schemaVersion,
      data: { ...data, attempt: state.attempt + 1, startedAt: now },
    },
  ];
};

/** Returns the open call if it has this attempt number, else null: the outcome is stale. */
const callOfAttempt = ({ open }: SessionState, attempt: number): OpenCall | null =>
  open?.call?.attempt === attempt ? open.call : null;

const startedFields = ({ turnId, step, provider, model, reservationId }: OpenCall) => ({
  turnId,
  step,
  provider,
  model,
  reservationId,
});

/** Ends a call that cannot be made, so that the model reads the reason as its result. */
const refuseUnusable = (turnId: string, { callId, problem }: ToolCall): SessionEvent[] =>
  problem
    ? [
        {
          type: 'ToolCallFailed',
          schemaVersion: 2,
          data: {
            turnId,
            callId,
            code: 'TOOL.UNUSABLE_CALL',
            cause: { kind: 'tool_call_unusable', problem },
          },
        },
      ]
    : [];

const recordAnswer = ({ data, now }: RecordAnswer, state: SessionState): SessionEvent[] => {
  const call = callOfAttempt(state, data.attempt);
  if (!call) return [];
  return [
    {
      type: 'ModelCallCompleted',
      schemaVersion,
      data: { ...startedFields(call), ...data, completedAt: now },
    },
    ...data.toolCalls.flatMap((toolCall) => refuseUnusable(call.turnId, toolCall)),
  ];
};

const recordFailure = ({ data, now }: RecordFailure, state: SessionState): SessionEvent[] => {
  const call = callOfAttempt(state, data.attempt);
  if (!call) return [];
  return [
    { type: 'ModelCallAborted', schemaVersion: 2, data: { ...startedFields(call), ...data, abortedAt: now } },
  ];
};

const endTurn = ({ data, now }: EndTurn, state: SessionState): SessionEvent[] => {
  const { turnId } = data;
  if (!openTurn(state, turnId)) return [];
  switch (data.ending) {
    case 'completed':
      return [
        {
          type: 'TurnCompleted',
          schemaVersion,
          data: { turnId, ...(data.cutBy ? { cutBy: data.cutBy } : {}), completedAt: now },
        },
      ];
    case 'cancelled':
      return [{ type: 'TurnCancelled', schemaVersion, data: { turnId, cancelledAt: now } }];
    case 'failed': {
      const { code, cause } = data;
      return [{ type: 'TurnFailed', schemaVersion: 2, data: { turnId, code, cause, failedAt: now } }];
    }
  }
};

const decide = (command: SessionCommand, state: SessionState): SessionEvent[] => {
  if (isApprovalCommand(command)) return decideApproval(command, state);
  if (isMessageCommand(command)) return decideMessage(command, state);
  if (isChatCommand(command)) return decideChatChange(command, state);
  if (isToolCommand(command)) return decideToolCalls(command, state);
  switch (command.type) {
    case 'StartSession':
      return startSession(command, state);
    case 'ForkSession':
      return forkSession(command, state);
    case 'RequestTurn':
      return requestTurn(command, state);
    case 'BlockTurns':
      return blockTurns(command, state);
    case 'CancelTurns':
      return cancelTurns(command, state);
    case 'BeginModelCall':
      return beginCall(command, state);
    case 'RecordAnswer':
      return recordAnswer(command, state);
    case 'RecordFailure':
      return recordFailure(command, state);
    case 'EndTurn':
      return endTurn(command, state);
    default:
      return assertNever(command);
  }
};

export type SessionDecider = Decider<SessionState, SessionCommand, SessionEvent>;

/**
 * Creates the decider of a session. A stale command, such as a second outcome, produces no event.
 */
export const sessionDecider = (window: RecentWindow): SessionDecider => ({
  initialState: initialSession,
  decide,
  evolve: evolveSession(window),
});
