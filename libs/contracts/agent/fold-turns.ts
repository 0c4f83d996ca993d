import type { z } from 'zod';
import { textOf } from '../log/causes.js';
import type { Cause } from '../log/causes.js';
import type { SessionEvent, SessionEventOf, Usage } from './events.js';
import type { SessionHistory } from './session-history.js';
import type { SessionTurn, TurnApproval, TurnItem } from './session-turns.js';
import { TURN_END_STATUS } from './turn-ends.js';

/** Maximum length of one text of a turn, UTF-16 units. The log has all of it. */
export const MAX_TURN_TEXT = 65_536;

type ToolItem = Extract<TurnItem, { kind: 'tool' }>;

/** A stored event with its places. */
export interface TurnEvent {
  readonly event: SessionEvent;
  readonly version: number;
  readonly position: number;
}

const clip = (text: string): { text: string; length: number } => ({
  text: text.slice(0, MAX_TURN_TEXT),
  length: text.length,
});

type Fold<T extends SessionEvent['type']> = (
  turn: SessionTurn,
  data: SessionEventOf<T>['data'],
  position: number,
) => void;

const findCall = ({ items }: SessionTurn, callId: string): ToolItem | undefined =>
  items.find((item): item is ToolItem => item.kind === 'tool' && item.callId === callId);

const endCall = (
  turn: SessionTurn,
  callId: string,
  position: number,
  end: { readonly status: ToolItem['status']; readonly text: string; readonly isError: boolean },
): void => {
  const call = findCall(turn, callId);
  if (!call) return;
  Object.assign(call, { status: end.status, isError: end.isError, endPosition: position });
  call.result = clip(end.text);
};

const failCall =
  (status: ToolItem['status'] = 'failed') =>
  (turn: SessionTurn, { callId, cause }: { callId: string; cause: Cause }, position: number): void =>
    endCall(turn, callId, position, { status, text: textOf(cause), isError: true });

const closeApproval = (
  turn: SessionTurn,
  callId: string,
  change: Partial<z.infer<typeof TurnApproval>>,
): void => {
  const approval = findCall(turn, callId)?.approval;
  if (approval) Object.assign(approval, change);
};

const addUsage = ({ usage: sum }: SessionTurn, usage: Usage): void => {
  sum.calls++;
  sum.inputTokens += usage.inputTokens;
  sum.outputTokens += usage.outputTokens;
  if (usage.cacheReadTokens) sum.cacheReadTokens = (sum.cacheReadTokens ?? 0) + usage.cacheReadTokens;
  if (usage.cacheWriteTokens) sum.cacheWriteTokens = (sum.cacheWriteTokens ?? 0) + usage.cacheWriteTokens;
  if (usage.estimated) sum.isEstimated = true;
};

const complete: Fold<'ModelCallCompleted'> = (turn, data, position) => {
  const { text, thought, toolCalls, usage, costMicroUsd, provider, model } = data;
  if (thought !== '') turn.items.push({ kind: 'thought', ...clip(thought), position });
  if (text !== '') turn.items.push({ kind: 'text', ...clip(text), provider, model, position });
  for (const { callId, name, input } of toolCalls)
    turn.items.push({
      ...{ kind: 'tool', callId, name, input, status: 'asked', result: null, isError: false },
      ...{ durationMs: null, approval: null, endPosition: null, position },
    });
  addUsage(turn, usage);
  turn.usage.costMicroUsd += costMicroUsd ?? 0;
};

const abort: Fold<'ModelCallAborted'> = (turn, { reason, cause, text, usage, provider, model }, position) => {
  if (reason === 'cancelled' && text !== '')
    turn.items.push({ kind: 'text', ...clip(text), provider, model, position });
  else turn.items.push({ kind: 'aborted', reason, message: textOf(cause), ...clip(text), position });
  if (usage === null) return;
  addUsage(turn, usage);
};

const askApproval: Fold<'ApprovalRequested'> = (turn, data, position) => {
  const { callId, approvalId: id, answerBy, digest, expiresAt } = data;
  const call = findCall(turn, callId);
  if (call)
    call.approval = {
      ...{ id, status: 'pending', answerBy, digest, expiresAt, answeredBy: null, reason: null, position },
    };
};

const FOLDS: { readonly [T in SessionEvent['type']]?: Fold<T> } = {
  ModelCallStarted: (turn) => void (turn.status = 'running'),
  ModelCallCompleted: complete,
  ModelCallAborted: abort,
  ToolCallRequested: (turn, { callId }) => {
    const call = findCall(turn, callId);
    if (call) call.status = 'running';
  },
  ToolCallCompleted: (turn, { callId, content, isError, durationMs }, position) => {
    endCall(turn, callId, position, { status: 'completed', text: content, isError });
    const call = findCall(turn, callId);
    if (call) call.durationMs = durationMs;
  },
  ToolCallFailed: failCall(),
  ToolCallUnknown: failCall('unknown'),
  ApprovalRequested: askApproval,
  ApprovalGranted: (turn, { callId, answeredBy, reason }) =>
    closeApproval(turn, callId, { status: 'granted', answeredBy, reason }),
  ApprovalDenied: (turn, data, position) => {
    closeApproval(turn, data.callId, { status: 'denied', answeredBy: data.answeredBy, reason: data.reason });
    failCall()(turn, data, position);
  },
  ApprovalExpired: (turn, data, position) => {
    closeApproval(turn, data.callId, { status: 'expired', reason: textOf(data.cause) });
    failCall()(turn, data, position);
  },
  ApprovalVoided: (turn, data, position) => {
    closeApproval(turn, data.callId, { status: 'voided', reason: textOf(data.cause) });
    failCall()(turn, data, position);
  },
  MessagesReceived: (turn, { messages }, position) => {
    for (const message of messages)
      turn.items.push({
        kind: 'received',
        from: message.from,
        ...clip(JSON.stringify(message.content)),
        position,
      });
  },
  AnswerForwarded: (turn, { agentId, text }, position) =>
    void turn.items.push({ kind: 'text', ...clip(text), provider: 'agent', model: agentId, position }),
  TurnCompleted: (turn, { completedAt }) => void (turn.endedAt = completedAt),
  TurnFailed: (turn, { code, cause, failedAt }) => {
    turn.endedAt = failedAt;
    turn.error = { code, message: textOf(cause) };
  },
  TurnCancelled: (turn, { cancelledAt }) => void (turn.endedAt = cancelledAt),
  ChatMessageEdited: (turn, { part, content, at: editedAt }) => {
    if (part === 'message') Object.assign(turn.message, clip(content), { editedAt });
    else editAnswer(turn, content);
  },
  ChatMessageDeleted: (turn, { part }) => deleteTurnPart(turn, part),
};

const editAnswer = (turn: SessionTurn, content: string): void => {
  const texts = turn.items.filter((item) => item.kind === 'text');
  const last = texts.at(-1);
  turn.items = turn.items.filter((item) => item.kind !== 'text' || item === last);
  if (last) Object.assign(last, clip(content));
};

/** Empties the message or the answer of a turn, as a person asked for. */
export const deleteTurnPart = (turn: SessionTurn, part: 'message' | 'answer'): void => {
  if (part === 'message') {
    Object.assign(turn.message, { text: '', length: 0, isDeleted: true });
    return;
  }
  turn.isAnswerDeleted = true;
  turn.items = [];
};

const begin = (
  { turnId, content, requestedAt }: SessionEventOf<'TurnRequested'>['data'],
  { version, position }: TurnEvent,
): SessionTurn => ({
  turnId,
  status: 'queued',
  message: { ...clip(content), at: requestedAt, editedAt: null, isDeleted: false, position },
  isAnswerDeleted: false,
  items: [],
  error: null,
  endedAt: null,
  usage: { calls: 0, inputTokens: 0, outputTokens: 0, costMicroUsd: 0 },
  ...{ firstVersion: version, lastVersion: version, firstPosition: position, lastPosition: position },
});

/**
 * Folds events of a session into its turns, in the order of their requests. Events of turns that
 * begin before the first event are left out. Pure: the dashboard folds live events by it too.
 */
export const foldTurns = (
  events: Iterable<TurnEvent>,
  turns = new Map<string, SessionTurn>(),
): Map<string, SessionTurn> => {
  for (const one of events) {
    const { event, version, position } = one;
    if (event.type === 'TurnRequested') turns.set(event.data.turnId, begin(event.data, one));
    const turnId = 'turnId' in event.data ? event.data.turnId : undefined;
    const turn = turnId === undefined ? undefined : turns.get(turnId);
    if (!turn) continue;
    (FOLDS[event.type] as Fold<SessionEvent['type']> | undefined)?.(turn, event.data as never, position);
    if (event.type in TURN_END_STATUS)
      turn.status = TURN_END_STATUS[event.type as keyof typeof TURN_END_STATUS];
    Object.assign(turn, { lastVersion: version, lastPosition: position });
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
  const turns = new Map(structuredClone(snapshot.turns).map((turn) => [turn.turnId, turn]));
  foldTurns(events.filter(({ position }) => position <= at) as readonly TurnEvent[], turns);
  for (const { turnId, part } of deleted) {
    const turn = turns.get(turnId);
    if (turn) deleteTurnPart(turn, part);
  }
  return [...turns.values()];
};
