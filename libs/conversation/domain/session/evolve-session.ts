import { textOf } from '@antiphon/contracts/causes';
import type { Cause } from '@antiphon/contracts/causes';
import type { SessionEvent, SessionEventOf } from '@antiphon/contracts/agent';
import { attachFile, detachFile, deleteMessage, editMessage } from './chat-changes.js';
import { addTools, completedCall } from './found-tools.js';
import { stepOf, tryOf } from './model-steps.js';
import { closeTurn, forkState } from './past-turns.js';
import { blockTurn } from './session-state.js';
import type { CallApproval, OpenTurn, RecentWindow, SessionState, TurnToolCall } from './session-state.js';

const updateOpen = (
  state: SessionState,
  turnId: string,
  change: (turn: OpenTurn) => OpenTurn,
): SessionState => (state.open?.turnId === turnId ? { ...state, open: change(state.open) } : state);

const requestTurn = (
  state: SessionState,
  { turnId, content, files, chain = [], role, caller }: SessionEventOf<'TurnRequested'>['data'],
): SessionState => {
  const turn: OpenTurn = {
    ...{ turnId, content, chain, received: [], returned: null, cancelRequested: false },
    ...{ steps: [], call: null, tries: [] },
    ...(files ? { files } : {}),
    ...(role ? { role } : {}),
    ...(caller === undefined ? {} : { caller }),
  };
  return state.open ? { ...state, queue: [...state.queue, turn] } : { ...state, open: turn };
};

const requestCancel = (state: SessionState, turnId: string): SessionState => {
  const cancel = (turn: OpenTurn): OpenTurn =>
    turn.turnId === turnId ? { ...turn, cancelRequested: true } : turn;
  return { ...state, open: state.open && cancel(state.open), queue: state.queue.map(cancel) };
};

const startCall = (state: SessionState, data: SessionEventOf<'ModelCallStarted'>['data']): SessionState =>
  updateOpen(
    { ...state, attempt: data.attempt, attemptTurnId: data.turnId, policy: data.policy ?? state.policy },
    data.turnId,
    ({ blocked: _ended, ...turn }) => ({ ...turn, call: data }),
  );

const completeCall = (
  state: SessionState,
  data: SessionEventOf<'ModelCallCompleted'>['data'],
): SessionState =>
  updateOpen(state, data.turnId, (turn) => ({
    ...turn,
    call: null,
    tries: [],
    steps: [...turn.steps, stepOf(data)],
  }));

const abortCall = (state: SessionState, data: SessionEventOf<'ModelCallAborted'>['data']): SessionState =>
  updateOpen(state, data.turnId, (turn) => ({ ...turn, call: null, tries: [...turn.tries, tryOf(data)] }));

const changed = (call: TurnToolCall, change: Parameters<typeof updateCall>[2]): TurnToolCall => ({
  ...call,
  ...(typeof change === 'function' ? change(call) : change),
});

const updateCall = (
  state: SessionState,
  { turnId, callId }: { turnId: string; callId: string },
  change: Partial<TurnToolCall> | ((call: TurnToolCall) => Partial<TurnToolCall>),
): SessionState =>
  updateOpen(state, turnId, (turn) => ({
    ...turn,
    steps: turn.steps.map((step) =>
      step.calls.some((call) => call.callId === callId)
        ? {
            ...step,
            calls: step.calls.map((call) => (call.callId === callId ? changed(call, change) : call)),
          }
        : step,
    ),
  }));

/** A process that takes a released call up may be lost again. */
const takenUp = ({ released = false }: TurnToolCall): Pick<TurnToolCall, 'released'> =>
  released ? { released: false } : {};

const updateApproval = (
  state: SessionState,
  data: { turnId: string; callId: string },
  change: (approval: CallApproval) => CallApproval,
): SessionState => {
  const call = state.open?.steps.flatMap(({ calls }) => calls).find(({ callId }) => callId === data.callId);
  return call?.approval ? updateCall(state, data, { approval: change(call.approval) }) : state;
};

const requestApproval = (
  state: SessionState,
  data: SessionEventOf<'ApprovalRequested'>['data'],
): SessionState => {
  const { approvalId, digest, moduleDigest, grants, answerBy, expiresAt, escalateAt, escalateTo } = data;
  const requested = { approvalId, digest, moduleDigest, grants, answerBy, expiresAt, escalateAt, escalateTo };
  return updateCall(state, data, { approval: { ...requested, status: 'pending', escalated: null } });
};

/** Grants a call. Edited arguments take the place of the requested ones, and their digest as well. */
const grantApproval = (
  state: SessionState,
  data: SessionEventOf<'ApprovalGranted'>['data'],
): SessionState => {
  const { edited } = data;
  const granted = updateApproval(state, data, (approval) => ({
    ...approval,
    status: 'granted',
    ...(edited ? { digest: edited.digest } : {}),
  }));
  return edited
    ? updateCall(granted, data, ({ input }) => ({ input: edited.input, askedInput: input }))
    : granted;
};

/** Fails a call without an approval: the cause is its result. */
const refuseCall = (
  state: SessionState,
  data: { turnId: string; callId: string; cause: Cause },
): SessionState => updateCall(state, data, { status: 'failed', content: textOf(data.cause), isError: true });

const receiveMessages = (
  state: SessionState,
  { turnId, messages }: SessionEventOf<'MessagesReceived'>['data'],
): SessionState =>
  updateOpen(state, turnId, (turn) => ({
    ...turn,
    received: [...turn.received, { afterSteps: turn.steps.length, messages }],
  }));

const returnAnswer = (
  state: SessionState,
  { turnId, cause }: SessionEventOf<'AnswerReturned'>['data'],
): SessionState =>
  updateOpen(state, turnId, (turn) => ({
    ...turn,
    returned: { afterSteps: turn.steps.length, cause },
  }));

/** The answer of the other agent is the last step of the turn. */
const forwardAnswer = (
  state: SessionState,
  { turnId, text }: SessionEventOf<'AnswerForwarded'>['data'],
): SessionState =>
  updateOpen(state, turnId, (turn) => ({
    ...turn,
    steps: [...turn.steps, { text, provider: '', model: '', calls: [] }],
  }));

type Folds = {
  readonly [T in SessionEvent['type']]: (
    state: SessionState,
    data: SessionEventOf<T>['data'],
    window: RecentWindow,
  ) => SessionState;
};

const folds: Folds = {
  SessionStarted: (state, { sessionId, sessionKey, agentId }) => ({
    ...state,
    started: { sessionId, sessionKey, agentId },
  }),
  SessionForked: forkState,
  TurnRequested: requestTurn,
  TurnBlocked: blockTurn,
  TurnCancelRequested: (state, { turnId }) => requestCancel(state, turnId),
  ModelCallStarted: startCall,
  ModelCallCompleted: completeCall,
  ModelCallAborted: abortCall,
  ApprovalRequested: requestApproval,
  ApprovalGranted: grantApproval,
  ApprovalDenied: refuseCall,
  ApprovalExpired: refuseCall,
  ApprovalVoided: refuseCall,
  ApprovalEscalated: (state, data) =>
    updateApproval(state, data, (approval) => ({ ...approval, escalateAt: null, escalated: data.to })),
  ToolCallRequested: (state, data) =>
    updateCall(state, data, (call) => ({
      status: 'requested',
      idempotent: data.idempotent,
      idempotencyKey: data.idempotencyKey,
      claimed: !data.idempotent && data.claims !== true,
      retry: data.retry ?? null,
      timeoutMs: data.timeoutMs ?? null,
      ...takenUp(call),
    })),
  ToolCallClaimed: (state, { turnId, callId, tryNumber }) =>
    updateCall(state, { turnId, callId }, { claimed: true, tries: tryNumber }),
  ToolCallReleased: (state, { turnId, callId }) => updateCall(state, { turnId, callId }, { released: true }),
  ToolCallRestarted: (state, { turnId, callId, lostDrivers }) =>
    updateCall(state, { turnId, callId }, (call) => ({ lostDrivers, ...takenUp(call) })),
  ToolCallDeferred: (state, data) =>
    updateCall(state, data, ({ deferred }) => ({
      claimed: false,
      lostDrivers: 0,
      deferred: {
        tries: (deferred?.tries ?? 0) + 1,
        reached: (deferred?.reached ?? 0) + (data.reason === 'unsent' ? 0 : 1),
        since: deferred?.since ?? data.deferredAt,
        dueAt: data.dueAt,
      },
    })),
  ToolCallCompleted: (state, data) => addTools(updateCall(state, data, completedCall(data)), data),
  ToolCallFailed: (state, data) =>
    updateCall(state, data, {
      ...{ status: 'failed', content: textOf(data.cause), isError: true },
      ...{ code: data.code, cause: data.cause },
    }),
  ToolCallUnknown: (state, data) =>
    updateCall(state, data, { status: 'unknown', content: textOf(data.cause), isError: true }),
  MessagesReceived: receiveMessages,
  AnswerForwarded: forwardAnswer,
  AnswerReturned: returnAnswer,
  ChatMessageEdited: editMessage,
  ChatMessageDeleted: deleteMessage,
  ChatFileAttached: attachFile,
  ChatFileDetached: detachFile,
  TurnCompleted: (state, { turnId }, window) => closeTurn(state, turnId, 'completed', '', window),
  TurnFailed: (state, { turnId, cause }, window) => closeTurn(state, turnId, 'failed', textOf(cause), window),
  TurnCancelled: (state, { turnId }, window) => closeTurn(state, turnId, 'cancelled', '', window),
};

/**
 * Folds a session's event stream, with a window of recent turns. It never throws: an inconsistent
 * event, or one of a newer version, changes nothing. The resulting `attempt` equals the one of the
 * frames' fold in the contracts; a test compares them.
 *
 * The state serves the next decision. It has the open turn and the queue, with the claims, tries
 * and deadlines of calls, which no reader sees. Readers fold whole turns with their texts, costs
 * and places by `foldTurns` of the contracts.
 */
export const evolveSession =
  (window: RecentWindow) =>
  (state: SessionState, { type, data }: SessionEvent): SessionState => {
    // The table's type binds each handler to its event's data; indexing by a union loses that.
    const step = folds[type] as
      ((...args: [SessionState, typeof data, RecentWindow]) => SessionState) | undefined;
    return step ? step(state, data, window) : state;
  };
