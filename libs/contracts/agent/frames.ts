import { z } from 'zod';
import { approvalFrames } from './approval-frames.js';
import type { ApprovalEvent } from './approval-events.js';
import type { SessionEvent, SessionEventOf, StreamedFrame } from './events.js';
import type { TurnEndStatus } from './turn-ends.js';

/** Offsets of one attempt start at attempt × 2²⁰, so that they only grow within a session. */
export const ATTEMPT_SPAN = 2 ** 20;
export const attemptOf = (offset: number): number => Math.floor(offset / ATTEMPT_SPAN);
/**
 * A driver that was lost may have streamed more text than the log knows of. What follows in the range of its attempt
 * begins here, above everything that it can have sent (an attempt has fewer frames than characters: 150,000).
 */
export const AFTER_LOSS = 2 ** 19;

export const FRAME_EVENTS = [
  'accepted',
  'text',
  'thought',
  'tool_use',
  'approval',
  'approval_update',
  'tool_result',
  'usage',
  'error',
  'restart',
  'done',
] as const;
export type FrameEvent = (typeof FRAME_EVENTS)[number];

/**
 * A frame of a session. A client gets `event`, `data` and `offset` (contract §3), with its request's id.
 * `prev` is the offset of the frame before it (0 for the first): a reader whose last frame is `prev` or later
 * has missed nothing, any other reader has a gap to fill. After a crash `prev` skips the frames that a
 * `restart` makes void.
 */
export const Frame = z.object({
  event: z.enum(FRAME_EVENTS),
  data: z.json(),
  offset: z.int().nonnegative(),
  prev: z.int().nonnegative(),
  turnId: z.uuid(),
});
export type Frame = z.infer<typeof Frame>;

/** On `live.<workspace>.<sessionId>`: a frame with the epoch of the driver that sent it; readers refuse a lower one. */
export const LiveFrame = Frame.extend({ epoch: z.int().nonnegative() });
export type LiveFrame = z.infer<typeof LiveFrame>;
export const liveSubject = (workspace: string, sessionId: string): string => `live.${workspace}.${sessionId}`;

/** Where the next frame of a session goes. */
export interface FrameCursor {
  /** The attempt whose range is in use, 0 before the first. */
  readonly attempt: number;
  readonly nextIndex: number;
  /** Offset of the last frame given, 0 before the first. */
  readonly lastOffset: number;
  readonly agentId: string;
  readonly sessionId: string;
  /** The turn whose `accepted` frame was already given, so that each turn has exactly one. */
  readonly openTurnId: string | null;
  /** First offset of the current attempt's own text, which a `restart` makes void. */
  readonly attemptTextFrom: number;
}

export const initialCursor: FrameCursor = {
  attempt: 0,
  nextIndex: 0,
  lastOffset: 0,
  agentId: '',
  sessionId: '',
  openTurnId: null,
  attemptTextFrom: 0,
};

interface Fold {
  readonly cursor: FrameCursor;
  readonly frames: readonly Frame[];
}
type FrameContent = readonly [event: FrameEvent, data: Frame['data']];

const silent = (cursor: FrameCursor): Fold => ({ cursor, frames: [] });

const give = ({ cursor, frames }: Fold, turnId: string, contents: readonly FrameContent[]): Fold => {
  const from = cursor.attempt * ATTEMPT_SPAN + cursor.nextIndex;
  const given = contents.map(([event, data], i) => {
    return { event, data, offset: from + i, prev: i === 0 ? cursor.lastOffset : from + i - 1, turnId };
  });
  const lastOffset = given.at(-1)?.offset ?? cursor.lastOffset;
  const nextIndex = cursor.nextIndex + given.length;
  return { cursor: { ...cursor, nextIndex, lastOffset }, frames: [...frames, ...given] };
};

/** Enters the range of an attempt; the first one of a turn opens with its `accepted`. */
const enterAttempt = (cursor: FrameCursor, attempt: number, turnId: string): Fold => {
  const entered = { ...cursor, attempt, nextIndex: 0, openTurnId: turnId };
  const { sessionId, agentId } = cursor;
  const accepted: FrameContent[] =
    cursor.openTurnId === turnId ? [] : [['accepted', { sessionId, turnId, agent: agentId }]];
  return give({ cursor: entered, frames: [] }, turnId, accepted);
};

/** Cuts an attempt's text and thought into the frames that were streamed. */
const streamedContents = (
  frames: readonly StreamedFrame[],
  text: string,
  thought: string,
): FrameContent[] => {
  const at = { text: 0, thought: 0 };
  const source = { text, thought };
  return frames.map(({ kind, length }) => {
    const from = at[kind];
    at[kind] += length;
    return [kind, source[kind].slice(from, from + length)];
  });
};

const modelCallStarted = (cursor: FrameCursor, { data }: SessionEventOf<'ModelCallStarted'>): Fold => {
  const { attempt, turnId, tryNumber } = data;
  const again = tryNumber > 1 && cursor.openTurnId === turnId;
  const restart: FrameContent[] = again ? [['restart', { offset: cursor.attemptTextFrom }]] : [];
  const entered = give(enterAttempt(cursor, attempt, turnId), turnId, restart);
  const attemptTextFrom = attempt * ATTEMPT_SPAN + entered.cursor.nextIndex;
  return { ...entered, cursor: { ...entered.cursor, attemptTextFrom } };
};

const modelCallCompleted = (cursor: FrameCursor, { data }: SessionEventOf<'ModelCallCompleted'>): Fold => {
  const { turnId, usage, model, costMicroUsd } = data;
  return give({ cursor, frames: [] }, turnId, [
    ...streamedContents(data.frames, data.text, data.thought),
    ...data.toolCalls.map((call): FrameContent => {
      return ['tool_use', { id: call.callId, name: call.name, input: call.input }];
    }),
    [
      'usage',
      {
        input_tokens: usage.inputTokens,
        output_tokens: usage.outputTokens,
        cost_usd: costMicroUsd === null ? null : costMicroUsd / 1e6,
        model,
      },
    ],
  ]);
};

const toolResult = (
  cursor: FrameCursor,
  turnId: string,
  id: string,
  content: string,
  isError: boolean,
): Fold => give({ cursor, frames: [] }, turnId, [['tool_result', { id, content, is_error: isError }]]);

const approvalFrame = (cursor: FrameCursor, event: ApprovalEvent): Fold =>
  give(silent(cursor), event.data.turnId, approvalFrames(event));

/** What a lost driver had streamed was not recorded by anybody. */
const modelCallAborted = (cursor: FrameCursor, { data }: SessionEventOf<'ModelCallAborted'>): Fold => {
  const { reason, turnId, frames, text, thought } = data;
  if (reason === 'driver_lost' && frames.length === 0) return silent({ ...cursor, nextIndex: AFTER_LOSS });
  return give(silent(cursor), turnId, streamedContents(frames, text, thought));
};

/** Where no other attempt makes the text of a lost driver void, the turn's end does. */
const voidOf = ({ nextIndex, attemptTextFrom }: FrameCursor): FrameContent[] =>
  nextIndex === AFTER_LOSS ? [['restart', { offset: attemptTextFrom }]] : [];

const turnEnded = (
  cursor: FrameCursor,
  turnId: string,
  status: TurnEndStatus,
  error?: { code: string; message: string },
): Fold => {
  const at = cursor.openTurnId === turnId ? silent(cursor) : enterAttempt(cursor, cursor.attempt + 1, turnId);
  const ending: FrameContent[] = error ? [['error', error]] : [];
  const ended = give(at, turnId, [...voidOf(at.cursor), ...ending, ['done', { turnId, status }]]);
  return { ...ended, cursor: { ...ended.cursor, openTurnId: null } };
};

type Folds = { [T in SessionEvent['type']]: (cursor: FrameCursor, event: SessionEventOf<T>) => Fold };

const FOLDS: Folds = {
  SessionStarted: (cursor, { data: { sessionId, agentId } }) => silent({ ...cursor, sessionId, agentId }),
  SessionForked: silent,
  TurnRequested: silent,
  TurnCancelRequested: silent,
  ToolCallRequested: silent,
  ToolCallClaimed: silent,
  ToolCallDeferred: silent,
  ModelCallStarted: modelCallStarted,
  ModelCallCompleted: modelCallCompleted,
  ModelCallAborted: modelCallAborted,
  ApprovalRequested: approvalFrame,
  ApprovalGranted: approvalFrame,
  ApprovalDenied: approvalFrame,
  ApprovalExpired: approvalFrame,
  ApprovalEscalated: approvalFrame,
  ApprovalVoided: approvalFrame,
  ToolCallCompleted: (cursor, { data }) =>
    toolResult(cursor, data.turnId, data.callId, data.content, data.isError),
  ToolCallFailed: (cursor, { data }) => toolResult(cursor, data.turnId, data.callId, data.message, true),
  ToolCallUnknown: (cursor, { data }) => toolResult(cursor, data.turnId, data.callId, data.message, true),
  TurnCompleted: (cursor, { data }) => turnEnded(cursor, data.turnId, 'completed'),
  TurnFailed: (cursor, { data: { turnId, code, message } }) =>
    turnEnded(cursor, turnId, 'failed', { code, message }),
  TurnCancelled: (cursor, { data }) => turnEnded(cursor, data.turnId, 'cancelled'),
};

/**
 * The frames that one event of a session gives, and the cursor after it: a pure fold, so that every reader,
 * at any age and on any gateway, derives the very same frames with the same offsets. A live driver sends
 * text frames ahead of their event, with the offsets that this fold will give them.
 *
 * A turn's first frame, `accepted`, opens the range of its first attempt. A turn that ends without an attempt
 * takes a range of its own. A `restart` names the first offset that it makes void: the next attempt gives it, or the
 * turn's end after a driver was lost.
 */
export const framesOf = (cursor: FrameCursor, event: SessionEvent): Fold =>
  (FOLDS[event.type] as (cursor: FrameCursor, event: SessionEvent) => Fold)(cursor, event);
