import type { Frame, LiveFrame } from '@antiphon/contracts/agent';
import { advance, judgeFrame, sequenceFrom, type FrameSequence } from '@antiphon/gateway-domain';

/** Where a reader finds what it missed. Both answer frames with an offset above `after`, in order. */
export interface FrameSources {
  /** From the log: everything that is committed. */
  readonly committed: (after: number) => Promise<readonly Frame[]>;
  /** From the short-lived `LIVE` stream: text of an attempt that still runs. */
  readonly live: (after: number) => Promise<readonly LiveFrame[]>;
}

export interface FrameReaderOptions extends FrameSources {
  /** Offset of the last frame that the client has; `null`: begin with the first frame that does not belong to `turnId` or opens it. */
  readonly after: number | null;
  readonly turnId?: string;
  readonly deliver: (frame: Frame) => void;
  readonly onError: (error: unknown) => void;
}

/** One client's view of one session's frames: each once, in order, whatever gets lost on the way. */
export interface FrameReader {
  push(frame: LiveFrame): void;
  /** Looks into the log (and `LIVE`) for frames that have not come by themselves. */
  catchUp(): Promise<void>;
  /** True once `done` of this turn was delivered. */
  hasSeenDone(turnId: string): boolean;
  close(): void;
}

/** Live frames that wait while a gap is being filled; more than these are found in the log again. */
const MAX_WAITING = 4_096;

interface ReaderState {
  sequence: FrameSequence | null;
  waiting: LiveFrame[];
  filling: Promise<void> | null;
  lastDoneTurn: string | null;
  closed: boolean;
}

/** A queued turn's reader starts at a frame of another turn or at its own `accepted`: nothing of its turn lies before. */
const anchors = (frame: LiveFrame, turnId: string | undefined): boolean =>
  frame.turnId !== turnId || frame.event === 'accepted';

export const createFrameReader = (options: FrameReaderOptions): FrameReader => {
  const state: ReaderState = {
    sequence: options.after === null ? null : sequenceFrom(options.after),
    waiting: [],
    filling: null,
    lastDoneTurn: null,
    closed: false,
  };

  const deliver = (frame: Frame): void => {
    state.sequence = advance(state.sequence ?? sequenceFrom(0), frame);
    if (frame.event === 'done') state.lastDoneTurn = frame.turnId;
    options.deliver(frame);
  };

  const accept = (frame: LiveFrame): 'deliver' | 'drop' | 'gap' => {
    if (state.sequence === null && anchors(frame, options.turnId)) state.sequence = sequenceFrom(frame.prev);
    const verdict = judgeFrame(state.sequence ?? sequenceFrom(0), frame);
    if (verdict === 'deliver') deliver(frame);
    return verdict;
  };

  const drain = (): void => {
    const waiting = state.waiting.sort((a, b) => a.offset - b.offset);
    state.waiting = [];
    for (const frame of waiting)
      if (!state.closed && (state.waiting.length > 0 || accept(frame) === 'gap')) state.waiting.push(frame);
  };

  const fill = async (): Promise<void> => {
    for (const frame of await options.committed(state.sequence?.last ?? 0)) deliverMissing(frame);
    for (const frame of await options.live(state.sequence?.last ?? 0))
      if (!state.closed && accept(frame) === 'gap') break;
    drain();
  };

  const deliverMissing = (frame: Frame): void => {
    if (!state.closed && frame.offset > (state.sequence?.last ?? 0)) deliver(frame);
  };

  const catchUp = (): Promise<void> =>
    (state.filling ??= fill()
      .catch(options.onError)
      .finally(() => (state.filling = null)));

  return {
    push: (frame) => {
      if (state.closed) return;
      // After a gap everything waits, so that frames stay in order while the log is being read. A gap that
      // cannot be filled yet (text of a running attempt) waits for the attempt's event, not for each frame.
      const blocked = state.filling !== null || state.waiting.length > 0;
      if (!blocked && accept(frame) !== 'gap') return;
      if (state.waiting.length < MAX_WAITING) state.waiting.push(frame);
      if (!blocked) void catchUp();
    },
    catchUp,
    hasSeenDone: (turnId) => state.lastDoneTurn === turnId,
    close: () => {
      state.closed = true;
      state.waiting = [];
    },
  };
};
