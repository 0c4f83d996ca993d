import { z } from 'zod';
import type { SessionEvent, StreamedFrame } from './events.js';

/** Offsets of one attempt start at attempt × 2²⁰, so that they only grow within a session. */
export const ATTEMPT_SPAN = 2 ** 20;
export const attemptOf = (offset: number): number => Math.floor(offset / ATTEMPT_SPAN);

export const FRAME_EVENTS = [
  'accepted',
  'text',
  'thought',
  'tool_use',
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

/** Where the next frame of a session goes. `attempt` 0 = no attempt was made yet. */
export interface FrameCursor {
  readonly attempt: number;
  readonly nextIndex: number;
  /** Offset of the last frame given, 0 before the first. */
  readonly lastOffset: number;
  readonly agentId: string;
  readonly sessionId: string;
  /** The turn whose `accepted` frame was already given, so that each turn has exactly one. */
  readonly openTurnId: string | null;
  /** True while the current attempt has been started and neither completed nor aborted. */
  readonly attemptOpen: boolean;
  /** First offset of the current attempt's own text, which a `restart` voids. */
  readonly attemptTextFrom: number;
}

export const initialCursor: FrameCursor = {
  attempt: 0,
  nextIndex: 0,
  lastOffset: 0,
  agentId: '',
  sessionId: '',
  openTurnId: null,
  attemptOpen: false,
  attemptTextFrom: 0,
};

type Emit = (event: FrameEvent, data: z.infer<ReturnType<typeof z.json>>, turnId: string) => void;

const emitStreamed = (emit: Emit, frames: StreamedFrame[], text: string, thought: string, turnId: string) => {
  const at = { text: 0, thought: 0 };
  const source = { text, thought };
  for (const { kind, length } of frames) {
    emit(kind, source[kind].slice(at[kind], at[kind] + length), turnId);
    at[kind] += length;
  }
};

/**
 * The frames that one event of a session gives, and the cursor after it: a pure fold, so that every reader,
 * at any age and on any gateway, derives the very same frames with the same offsets. A live driver sends
 * text frames ahead of their event, with the offsets that this fold will give them.
 *
 * A turn's first frame, `accepted`, opens the range of its first attempt. A turn that ends without an attempt
 * takes a range of its own. `voids` in a `restart` is the first offset that it makes void.
 */
export const framesOf = (
  cursor: FrameCursor,
  event: SessionEvent,
): { cursor: FrameCursor; frames: Frame[] } => {
  const frames: Frame[] = [];
  let next = cursor;
  const emit: Emit = (name, data, turnId) => {
    const offset = next.attempt * ATTEMPT_SPAN + next.nextIndex;
    frames.push({ event: name, data, offset, prev: next.lastOffset, turnId });
    next = { ...next, nextIndex: next.nextIndex + 1, lastOffset: offset };
  };
  const open = (attempt: number, turnId: string) => {
    const previous = next;
    next = { ...next, attempt, nextIndex: 0, attemptOpen: true, openTurnId: turnId };
    if (previous.openTurnId !== turnId)
      emit('accepted', { sessionId: next.sessionId, turnId, agent: next.agentId }, turnId);
    return previous;
  };
  const close = (turnId: string, status: string, error?: { code: string; message: string }) => {
    if (next.openTurnId !== turnId) open(next.attempt + 1, turnId);
    if (error) emit('error', error, turnId);
    emit('done', { turnId, status }, turnId);
    next = { ...next, openTurnId: null, attemptOpen: false };
  };
  switch (event.type) {
    case 'SessionStarted':
      next = { ...next, sessionId: event.data.sessionId, agentId: event.data.agentId };
      break;
    case 'ModelCallStarted': {
      const { attempt, turnId, tryNumber } = event.data;
      const voids = cursor.attemptTextFrom;
      open(attempt, turnId);
      if (tryNumber > 1 && cursor.openTurnId === turnId) emit('restart', { offset: voids }, turnId);
      next = { ...next, attemptTextFrom: attempt * ATTEMPT_SPAN + next.nextIndex };
      break;
    }
    case 'ModelCallAborted': {
      const { frames: streamed, text, thought, turnId } = event.data;
      emitStreamed(emit, streamed, text, thought, turnId);
      next = { ...next, attemptOpen: false };
      break;
    }
    case 'ModelCallCompleted': {
      const { frames: streamed, text, thought, turnId, toolCalls, usage, model } = event.data;
      emitStreamed(emit, streamed, text, thought, turnId);
      for (const call of toolCalls)
        emit('tool_use', { id: call.callId, name: call.name, input: call.input }, turnId);
      emit(
        'usage',
        {
          input_tokens: usage.inputTokens,
          output_tokens: usage.outputTokens,
          cost_usd: event.data.costMicroUsd === null ? null : event.data.costMicroUsd / 1e6,
          model,
        },
        turnId,
      );
      next = { ...next, attemptOpen: false };
      break;
    }
    case 'ToolCallCompleted':
      emit(
        'tool_result',
        { id: event.data.callId, content: event.data.content, is_error: event.data.isError },
        event.data.turnId,
      );
      break;
    case 'ToolCallFailed':
    case 'ToolCallUnknown':
      emit(
        'tool_result',
        { id: event.data.callId, content: event.data.message, is_error: true },
        event.data.turnId,
      );
      break;
    case 'TurnCompleted':
      close(event.data.turnId, 'completed');
      break;
    case 'TurnFailed':
      close(event.data.turnId, 'failed', { code: event.data.code, message: event.data.message });
      break;
    case 'TurnCancelled':
      close(event.data.turnId, 'cancelled');
      break;
    case 'TurnRequested':
    case 'TurnCancelRequested':
    case 'ToolCallRequested':
      break;
  }
  return { cursor: next, frames };
};
