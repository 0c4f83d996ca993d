import { z } from 'zod';
import { textOf } from '../log/causes.js';
import { approvalFrames } from './approval-events.js';
import type { ApprovalEvent } from './approval-events.js';
import type { AnswerCut, BlockCode, SessionEvent, SessionEventOf, StreamedFrame } from './events.js';
import type { TurnEndStatus } from './turn-ends.js';

/** Offsets of an attempt start at attempt × 2²⁰, so that offsets only grow within a session. */
export const ATTEMPT_SPAN = 2 ** 20;
/** Returns the attempt whose range contains an offset. */
export const attemptOf = (offset: number): number => Math.floor(offset / ATTEMPT_SPAN);
/**
 * Index of the first frame after a lost driver. The driver may have streamed text that is not in
 * the log, but never this many frames. The event of an attempt holds its list of frames.
 */
export const AFTER_LOSS = 2 ** 19;

export const FRAME_EVENTS = [
  'accepted',
  'blocked',
  'text',
  'thought',
  'tool_use',
  'progress',
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
 * A frame of a session. A client gets `event`, `data` and `offset`, with the id of its request.
 * `prev` is the offset of the frame before it, 0 for the first. A reader whose last frame is below
 * `prev` has a gap to fill. After a crash `prev` skips the frames that a `restart` voids.
 */
export const Frame = z.object({
  event: z.enum(FRAME_EVENTS),
  data: z.json(),
  offset: z.int().nonnegative(),
  prev: z.int().nonnegative(),
  turnId: z.uuid(),
});
export type Frame = z.infer<typeof Frame>;

/**
 * A frame on `live.<workspace>.<sessionId>`, with the epoch of its driver. Readers drop frames of a
 * lower epoch.
 */
export const LiveFrame = Frame.extend({ epoch: z.int().nonnegative() });
export type LiveFrame = z.infer<typeof LiveFrame>;
export const liveSubject = (workspace: string, sessionId: string): string => `live.${workspace}.${sessionId}`;

/**
 * Subject of the relay's message about the end of a turn: the turn's id, once the log has the end.
 * It may be lost, as a live frame may.
 */
export const turnEndSubject = (workspace: string, sessionId: string): string =>
  `hint.turn-end.${workspace}.${sessionId}`;

/**
 * Subject of the progress of tool calls, from the gateway of the program to all gateways. A message
 * may be lost. Clients of the session get it as a frame `progress`, which no log has.
 */
export const TOOL_PROGRESS_SUBJECT = 'hint.gateway.tool-progress';
export const ToolProgress = z.object({
  workspace: z.string(),
  sessionId: z.uuid(),
  /** Id of the call. */
  id: z.uuid(),
  name: z.string(),
  message: z.string().optional(),
  fraction: z.number().optional(),
});
export type ToolProgress = z.infer<typeof ToolProgress>;

/** Position of the next frame of a session. */
export interface FrameCursor {
  /** Attempt whose offset range is in use, 0 before the first. */
  readonly attempt: number;
  readonly nextIndex: number;
  /** Offset of the last frame, 0 before the first. */
  readonly lastOffset: number;
  readonly agentId: string;
  readonly sessionId: string;
  /** Turn that already has its `accepted` frame, so that each turn gets exactly one. */
  readonly openTurnId: string | null;
  /** First offset of the current attempt's text, which a `restart` voids. */
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

const unchanged = (cursor: FrameCursor): Fold => ({ cursor, frames: [] });

const appendFrames = ({ cursor, frames }: Fold, turnId: string, contents: readonly FrameContent[]): Fold => {
  const from = cursor.attempt * ATTEMPT_SPAN + cursor.nextIndex;
  const appended = contents.map(([event, data], i) => {
    return { event, data, offset: from + i, prev: i === 0 ? cursor.lastOffset : from + i - 1, turnId };
  });
  const lastOffset = appended.at(-1)?.offset ?? cursor.lastOffset;
  const nextIndex = cursor.nextIndex + appended.length;
  return { cursor: { ...cursor, nextIndex, lastOffset }, frames: [...frames, ...appended] };
};

/**
 * Enters the offset range of an attempt. The first attempt of a turn begins with the `accepted`
 * frame.
 */
const enterAttempt = (cursor: FrameCursor, attempt: number, turnId: string): Fold => {
  const entered = { ...cursor, attempt, nextIndex: 0, openTurnId: turnId };
  const { sessionId, agentId } = cursor;
  const accepted: FrameContent[] =
    cursor.openTurnId === turnId ? [] : [['accepted', { sessionId, turnId, agent: agentId }]];
  return appendFrames({ cursor: entered, frames: [] }, turnId, accepted);
};

/** Cuts the text and thought of an attempt into the frames that were streamed. */
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
  const isRetry = tryNumber > 1 && cursor.openTurnId === turnId;
  const restart: FrameContent[] = isRetry ? [['restart', { offset: cursor.attemptTextFrom }]] : [];
  const entered = appendFrames(enterAttempt(cursor, attempt, turnId), turnId, restart);
  const attemptTextFrom = attempt * ATTEMPT_SPAN + entered.cursor.nextIndex;
  return { ...entered, cursor: { ...entered.cursor, attemptTextFrom } };
};

const modelCallCompleted = (cursor: FrameCursor, { data }: SessionEventOf<'ModelCallCompleted'>): Fold => {
  const { turnId, usage, model, costMicroUsd } = data;
  return appendFrames({ cursor, frames: [] }, turnId, [
    ...streamedContents(data.frames, data.text, data.thought),
    ...data.toolCalls.map((call): FrameContent => {
      return ['tool_use', { id: call.callId, name: call.name, input: call.input }];
    }),
    [
      'usage',
      {
        input_tokens: usage.inputTokens,
        output_tokens: usage.outputTokens,
        ...(usage.cacheReadTokens ? { cache_read_tokens: usage.cacheReadTokens } : {}),
        ...(usage.cacheWriteTokens ? { cache_write_tokens: usage.cacheWriteTokens } : {}),
        cost_usd: costMicroUsd === null ? null : costMicroUsd / 1e6,
        model,
        ...(usage.estimated ? { estimated: true } : {}),
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
): Fold =>
  appendFrames({ cursor, frames: [] }, turnId, [['tool_result', { id, content, is_error: isError }]]);

/** Length of one text frame of a forwarded answer, UTF-16 units. */
const FORWARDED_FRAME = 16_384;

/** Cuts a text into frames; a surrogate pair stays whole. */
const textContents = (text: string): FrameContent[] => {
  const contents: FrameContent[] = [];
  for (let from = 0; from < text.length;) {
    const end = Math.min(from + FORWARDED_FRAME, text.length);
    const last = text.charCodeAt(end - 1);
    const to = end < text.length && last >= 0xd800 && last <= 0xdbff ? end - 1 : end;
    contents.push(['text', text.slice(from, to)]);
    from = to;
  }
  return contents;
};

const approvalFrame = (cursor: FrameCursor, event: ApprovalEvent): Fold =>
  appendFrames(unchanged(cursor), event.data.turnId, approvalFrames(event));

/** The text that a lost driver streamed is not in the log. */
const modelCallAborted = (cursor: FrameCursor, { data }: SessionEventOf<'ModelCallAborted'>): Fold => {
  const { reason, turnId, frames, text, thought } = data;
  if (reason === 'driver_lost' && frames.length === 0) return unchanged({ ...cursor, nextIndex: AFTER_LOSS });
  return appendFrames(unchanged(cursor), turnId, streamedContents(frames, text, thought));
};

/**
 * Returns the `restart` that voids a lost driver's text at the end of its turn, where no other
 * attempt did.
 */
const restartOfLostText = ({ nextIndex, attemptTextFrom }: FrameCursor): FrameContent[] =>
  nextIndex === AFTER_LOSS ? [['restart', { offset: attemptTextFrom }]] : [];

/** Action that ends the wait of a blocked turn, by the code of the wait. */
const REMEDIES: Readonly<Record<BlockCode, (agentId: string) => string>> = {
  'AGENT.PAUSED': (agentId) => `resume the agent (antiphon agent resume ${agentId}), or cancel the turn`,
  'AGENT.ERROR': (agentId) =>
    `wait, or resume the agent now (antiphon agent resume ${agentId}); its log lines have the reason`,
  'AGENT.QUEUED': () => 'wait for the end of another agent of the tree, or cancel the turn',
};

/**
 * A turn that waits. Its frame has a place behind the frames before it, since the turn may have no
 * attempt yet. Offset 0 is the position before all frames.
 */
const turnBlocked = (cursor: FrameCursor, { data }: SessionEventOf<'TurnBlocked'>): Fold => {
  const { turnId, code, cause, until } = data;
  const isFirst = cursor.attempt === 0 && cursor.nextIndex === 0;
  const at = isFirst ? { ...cursor, nextIndex: 1 } : cursor;
  const remedy = REMEDIES[code](cursor.agentId);
  return appendFrames(unchanged(at), turnId, [
    ...restartOfLostText(at),
    ['blocked', { turnId, code, message: textOf(cause), remedy, until }],
  ]);
};

const turnEnded = (
  cursor: FrameCursor,
  turnId: string,
  status: TurnEndStatus,
  { error, cutBy }: { error?: { code: string; message: string }; cutBy?: AnswerCut | undefined } = {},
): Fold => {
  const at =
    cursor.openTurnId === turnId ? unchanged(cursor) : enterAttempt(cursor, cursor.attempt + 1, turnId);
  const ending: FrameContent[] = error ? [['error', error]] : [];
  const ended = appendFrames(at, turnId, [
    ...restartOfLostText(at.cursor),
    ...ending,
    ['done', cutBy ? { turnId, status, cut_by: cutBy } : { turnId, status }],
  ]);
  return { ...ended, cursor: { ...ended.cursor, openTurnId: null } };
};

type Folds = { [T in SessionEvent['type']]: (cursor: FrameCursor, event: SessionEventOf<T>) => Fold };

const FOLDS: Folds = {
  SessionStarted: (cursor, { data: { sessionId, agentId } }) => unchanged({ ...cursor, sessionId, agentId }),
  SessionForked: unchanged,
  TurnRequested: unchanged,
  TurnBlocked: turnBlocked,
  TurnCancelRequested: unchanged,
  ToolCallRequested: unchanged,
  ToolCallClaimed: unchanged,
  ToolCallReleased: unchanged,
  ToolCallRestarted: unchanged,
  ToolCallDeferred: unchanged,
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
  ToolCallFailed: (cursor, { data }) =>
    toolResult(cursor, data.turnId, data.callId, textOf(data.cause), true),
  ToolCallUnknown: (cursor, { data }) =>
    toolResult(cursor, data.turnId, data.callId, textOf(data.cause), true),
  MessagesReceived: unchanged,
  AnswerReturned: unchanged,
  ChatMessageEdited: unchanged,
  ChatMessageDeleted: unchanged,
  ChatFileAttached: unchanged,
  ChatFileDetached: unchanged,
  AnswerForwarded: (cursor, { data }) =>
    appendFrames(unchanged(cursor), data.turnId, textContents(data.text)),
  TurnCompleted: (cursor, { data }) => turnEnded(cursor, data.turnId, 'completed', { cutBy: data.cutBy }),
  TurnFailed: (cursor, { data: { turnId, code, cause } }) =>
    turnEnded(cursor, turnId, 'failed', { error: { code, message: textOf(cause) } }),
  TurnCancelled: (cursor, { data }) => turnEnded(cursor, data.turnId, 'cancelled'),
};

/**
 * Returns the frames of one session event and the cursor after it. The fold is pure, so that every
 * reader on any gateway derives the same frames with the same offsets. A live driver sends text
 * frames before their event is committed, with the offsets that this fold assigns later.
 *
 * The first frame of a turn, `accepted`, opens the range of its first attempt. A turn that ends
 * without an attempt gets a range of its own. A `restart` names the first offset that it voids. It
 * opens the next attempt, or precedes the end of the turn after its driver was lost.
 */
export const framesOf = (cursor: FrameCursor, event: SessionEvent): Fold =>
  (FOLDS[event.type] as (cursor: FrameCursor, event: SessionEvent) => Fold)(cursor, event);
