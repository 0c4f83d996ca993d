import { messageOf } from '../log/causes.js';
import type { SessionEvent, SessionEventOf, Usage } from './events.js';
import type { SessionHistory } from './session-history.js';
import type { SessionTurn, TurnApproval, TurnItem } from './session-turns.js';
import { TURN_END_STATUS } from './turn-ends.js';
import type { TurnEndType } from './turn-ends.js';

/** Maximum length of one text of a turn in answers of the API, UTF-16 units. The log has all of it. */
export const MAX_TURN_TEXT = 65_536;

type ToolItem = Extract<TurnItem, { kind: 'tool' }>;

/** A stored event with its places. */
export interface TurnEvent {
  readonly event: SessionEvent;
  readonly version: number;
  readonly position: number;
}

/** An event that is folded: where it is, and how its texts are cut. */
interface Step extends TurnEvent {
  readonly clip: (text?: string) => { text: string; length: number };
}

/** Data of an event. A log of an earlier version lacks fields, and deleted texts are gone. */
type Data<T extends SessionEvent['type']> = Partial<SessionEventOf<T>['data']>;

type Fold<T extends SessionEvent['type']> = (turn: SessionTurn, data: Data<T>, step: Step) => SessionTurn;

const addItems = (turn: SessionTurn, ...items: TurnItem[]): SessionTurn => ({
  ...turn,
  items: [...turn.items, ...items],
});

const changeCall = (
  turn: SessionTurn,
  callId: string | undefined,
  change: (call: ToolItem) => Partial<ToolItem>,
): SessionTurn => ({
  ...turn,
  items: turn.items.map((item) =>
    item.kind === 'tool' && item.callId === callId ? { ...item, ...change(item) } : item,
  ),
});

const failCall =
  (status: ToolItem['status'] = 'failed') =>
  (turn: SessionTurn, data: Data<'ToolCallFailed'>, { position, clip }: Step): SessionTurn =>
    changeCall(turn, data.callId, () => ({
      ...{ status, isError: true, result: clip(messageOf(data)), endPosition: position },
    }));

const closeApproval = (
  turn: SessionTurn,
  callId: string | undefined,
  change: Partial<TurnApproval>,
): SessionTurn =>
  changeCall(turn, callId, ({ approval }) => ({ approval: approval && { ...approval, ...change } }));

const decide = (
  turn: SessionTurn,
  { callId, answeredBy, answeredByName, reason, edited }: Data<'ApprovalGranted'>,
  status: TurnApproval['status'],
): SessionTurn =>
  closeApproval(turn, callId, {
    ...{ status, answeredBy: answeredBy ?? null },
    ...{ answeredByName: answeredByName ?? null, reason: reason ?? null },
    ...(edited ? { edited } : {}),
  });

/** Closes an approval that no person decided. Its cause is the result of the call. */
const lapse =
  (status: TurnApproval['status']): Fold<'ApprovalExpired' | 'ApprovalVoided'> =>
  (turn, data, step) =>
    failCall()(closeApproval(turn, data.callId, { status, reason: messageOf(data) }), data, step);

const addUsage = (
  turn: SessionTurn,
  usage: Partial<Usage> | null | undefined,
  costMicroUsd: number | null = 0,
): SessionTurn => {
  const { inputTokens = 0, outputTokens = 0, cacheReadTokens, cacheWriteTokens, estimated } = usage ?? {};
  const sum = { ...turn.usage };
  sum.calls++;
  sum.inputTokens += inputTokens;
  sum.outputTokens += outputTokens;
  sum.costMicroUsd += costMicroUsd ?? 0;
  if (cacheReadTokens) sum.cacheReadTokens = (sum.cacheReadTokens ?? 0) + cacheReadTokens;
  if (cacheWriteTokens) sum.cacheWriteTokens = (sum.cacheWriteTokens ?? 0) + cacheWriteTokens;
  if (estimated) sum.isEstimated = true;
  return { ...turn, usage: sum };
};

const complete: Fold<'ModelCallCompleted'> = (turn, data, { position, clip }) => {
  const { text = '', thought = '', toolCalls = [], provider = '', model = '' } = data;
  const items: TurnItem[] = toolCalls.map(({ callId, name, input }) => ({
    ...{ kind: 'tool', callId, name, input, status: 'asked', result: null, isError: false },
    ...{ durationMs: null, approval: null, requestPosition: null, endPosition: null, position },
  }));
  if (text !== '') items.unshift({ kind: 'text', ...clip(text), provider, model, position });
  if (thought !== '') items.unshift({ kind: 'thought', ...clip(thought), position });
  return addUsage({ ...addItems(turn, ...items), model: model || turn.model }, data.usage, data.costMicroUsd);
};

const abort: Fold<'ModelCallAborted'> = (turn, data, { position, clip }) => {
  const { reason = 'provider_error', text = '', usage = null, provider = '', model = '' } = data;
  const item: TurnItem =
    reason === 'cancelled' && text !== ''
      ? { kind: 'text', ...clip(text), provider, model, position }
      : { kind: 'aborted', reason, message: messageOf(data), ...clip(text), position };
  const next = addItems(turn, item);
  return usage === null ? next : addUsage(next, usage);
};

const askApproval: Fold<'ApprovalRequested'> = (turn, data, { position }) => {
  const { callId, approvalId: id = '', answerBy = '', digest = '', expiresAt = '' } = data;
  const { grants = [], preview = '' } = data;
  return changeCall(turn, callId, ({ requestPosition }) => ({
    requestPosition: requestPosition ?? position,
    approval: {
      ...{ id, status: 'pending', answerBy, digest, grants, preview: preview || null, expiresAt, position },
      ...{ answeredBy: null, answeredByName: null, reason: null },
    },
  }));
};

/** Replaces the answer by a text of a person. The other texts of the turn are removed. */
const editAnswer = (
  turn: SessionTurn,
  content: string,
  { clip }: Step,
  editedAt: string | null,
): SessionTurn => {
  const last = turn.items.findLast(({ kind }) => kind === 'text');
  const items = turn.items
    .filter((item) => item.kind !== 'text' || item === last)
    .map((item) => (item === last ? { ...item, ...clip(content) } : item));
  return { ...turn, items, answerEditedAt: editedAt };
};

/** Empties the message or the answer of a turn, as a person asked for. */
export const deleteTurnPart = (turn: SessionTurn, part: 'message' | 'answer'): SessionTurn => {
  const { message, isAnswerDeleted } = turn;
  if (part === 'answer') return isAnswerDeleted ? turn : { ...turn, isAnswerDeleted: true, items: [] };
  if (message.isDeleted) return turn;
  const { files: _files, ...rest } = message;
  return { ...turn, message: { ...rest, text: '', length: 0, isDeleted: true } };
};

/** Ends a wait: the turn continued, or ended. */
const unblock = (turn: SessionTurn): SessionTurn =>
  turn.items.some((item) => item.kind === 'blocked' && !item.isOver)
    ? {
        ...turn,
        items: turn.items.map((item) => (item.kind === 'blocked' ? { ...item, isOver: true } : item)),
      }
    : turn;

const end = (
  turn: SessionTurn,
  type: TurnEndType,
  endedAt: string | null,
  { version: endVersion, position: endPosition }: Step,
): SessionTurn => ({
  ...unblock(turn),
  ...{ status: TURN_END_STATUS[type], endedAt, endVersion, endPosition },
});

/** Adds the reason of a wait, or replaces that of the same wait. */
const block: Fold<'TurnBlocked'> = (turn, data, { position, clip }) => {
  const { code = 'AGENT.ERROR', until = null } = data;
  const items = turn.items.filter((item) => item.kind !== 'blocked' || item.isOver);
  const text = clip(messageOf(data));
  return { ...turn, items: [...items, { kind: 'blocked', ...text, code, until, isOver: false, position }] };
};

const FOLDS: { readonly [T in SessionEvent['type']]?: Fold<T> } = {
  TurnBlocked: block,
  ModelCallStarted: (turn, { model }) => ({
    ...unblock(turn),
    ...{ status: 'running', model: model ?? turn.model },
  }),
  ModelCallCompleted: complete,
  ModelCallAborted: abort,
  ToolCallRequested: (turn, { callId }, { position }) =>
    changeCall(turn, callId, ({ requestPosition }) => ({
      status: 'running',
      requestPosition: requestPosition ?? position,
    })),
  ToolCallCompleted: (turn, { callId, content, isError = false, durationMs = null }, { position, clip }) =>
    changeCall(turn, callId, () => ({
      ...{ status: 'completed', isError, durationMs, result: clip(content), endPosition: position },
    })),
  ToolCallFailed: failCall(),
  ToolCallUnknown: failCall('unknown'),
  ApprovalRequested: askApproval,
  ApprovalGranted: (turn, data) => decide(turn, data, 'granted'),
  ApprovalDenied: (turn, data, step) => failCall()(decide(turn, data, 'denied'), data, step),
  ApprovalExpired: lapse('expired'),
  ApprovalVoided: lapse('voided'),
  MessagesReceived: (turn, { messages = [] }, { position, clip }) =>
    addItems(
      turn,
      ...messages.map(({ from, content }): TurnItem => {
        const text = clip(JSON.stringify(content));
        return { kind: 'received', from, ...text, position };
      }),
    ),
  AnswerForwarded: (turn, { agentId: model = '', text }, { position, clip }) =>
    addItems(turn, { kind: 'text', ...clip(text), provider: 'agent', model, position }),
  AnswerReturned: (turn, data, { position, clip }) =>
    addItems(turn, { kind: 'returned', ...clip(messageOf(data)), position }),
  ChatMessageEdited: (turn, { part, content, at: editedAt = null }, step) =>
    part === 'message'
      ? { ...turn, message: { ...turn.message, ...step.clip(content), editedAt } }
      : editAnswer(turn, content ?? '', step, editedAt),
  ChatMessageDeleted: (turn, { part = 'answer' }) => deleteTurnPart(turn, part),
  TurnCompleted: (turn, { completedAt = null, cutBy = null }, step) =>
    end({ ...turn, cutBy }, 'TurnCompleted', completedAt, step),
  TurnFailed: (turn, data, step) => {
    const error = { code: data.code ?? '', message: messageOf(data) };
    return end({ ...turn, error }, 'TurnFailed', data.failedAt ?? null, step);
  },
  TurnCancelled: (turn, { cancelledAt = null }, step) => end(turn, 'TurnCancelled', cancelledAt, step),
};

const begin = (
  { turnId = '', content, files, requestedAt = '' }: Data<'TurnRequested'>,
  { version, position, clip }: Step,
): SessionTurn => ({
  ...{ turnId, status: 'queued', model: null, items: [] },
  message: {
    ...{ ...clip(content), at: requestedAt, editedAt: null, isDeleted: false, position },
    ...(files === undefined ? {} : { files }),
  },
  ...{ answerEditedAt: null, isAnswerDeleted: false, cutBy: null, error: null },
  ...{ endedAt: null, endVersion: null, endPosition: null },
  usage: { calls: 0, inputTokens: 0, outputTokens: 0, costMicroUsd: 0 },
  ...{ firstVersion: version, lastVersion: version, firstPosition: position, lastPosition: position },
});

/**
 * Returns a turn after one of its events. It is the same object for an event of another turn, and
 * undefined if the request of the turn is not folded. Pure: the gateway and the dashboard show a
 * session by it. `maxText` cuts each text.
 */
export const foldTurn = (
  turn: SessionTurn | undefined,
  one: TurnEvent,
  maxText = MAX_TURN_TEXT,
): SessionTurn | undefined => {
  const { event, version, position } = one;
  const clip = (text = '') => ({ text: text.slice(0, maxText), length: text.length });
  const step = { ...one, clip };
  if (event.type === 'TurnRequested') return begin(event.data, step);
  if (!turn || !('turnId' in event.data) || event.data.turnId !== turn.turnId) return turn;
  const fold = Object.hasOwn(FOLDS, event.type) ? (FOLDS[event.type] as Fold<never>) : undefined;
  const next = fold ? fold(turn, event.data as never, step) : turn;
  return { ...next, lastVersion: version, lastPosition: position };
};

/**
 * Folds events of a session into its turns, in the order of their requests. Events of turns that
 * begin before the first event are left out.
 */
export const foldTurns = (
  events: Iterable<TurnEvent>,
  turns = new Map<string, SessionTurn>(),
): Map<string, SessionTurn> => {
  for (const one of events) {
    const { data } = one.event;
    if (!('turnId' in data)) continue;
    const turn = foldTurn(turns.get(data.turnId), one);
    if (turn) turns.set(data.turnId, turn);
  }
  return turns;
};

type Foldable = Pick<SessionHistory, 'snapshot' | 'deleted'> & {
  readonly events: readonly { readonly event: object; readonly version: number; readonly position: number }[];
};

/**
 * Returns the turns of a history as of one of its positions, by the fold of the server. They equal
 * the latest turns that `GET /api/v1/sessions/{id}/turns?at=` returns, and turns before these of
 * the snapshot. Pure.
 */
export const foldHistory = ({ snapshot, events, deleted }: Foldable, at: number): SessionTurn[] => {
  const turns = new Map(snapshot.turns.map((turn) => [turn.turnId, turn]));
  foldTurns(events.filter(({ position }) => position <= at) as readonly TurnEvent[], turns);
  for (const { turnId, part } of deleted) {
    const turn = turns.get(turnId);
    if (turn) turns.set(turnId, deleteTurnPart(turn, part));
  }
  return [...turns.values()];
};
