import type { Frame, LiveFrame } from '@antiphon/contracts/agent';
import { advance, judgeFrame, sequenceFrom, type FrameSequence } from '@antiphon/gateway-domain';
import type { FramePage } from './frame-log.js';
import { createWaitingFrames } from './waiting-frames.js';

/** Where a reader finds what it missed. Both answer frames with an offset above `after`, in order. */
export interface FrameSources {
  /** From the log: everything that is committed, read as it is delivered. */
  readonly committed: (after: number) => AsyncIterable<FramePage>;
  /** From the short-lived `LIVE` stream: text of an attempt that still runs, and began at `since` (ms). */
  readonly live: (after: number, since: number) => Promise<readonly LiveFrame[]>;
}

export interface FrameReaderOptions extends FrameSources {
  /** Offset of the last frame that the client has; `null`: begin with the first frame that does not belong to `turnId` or opens it. */
  readonly after: number | null;
  readonly turnId?: string;
  readonly deliver: (frame: Frame) => void;
  /** Settles when the client takes more; undefined when it does. The past is read no faster than that. */
  readonly room?: () => Promise<void> | undefined;
  readonly onError: (error: unknown) => void;
}

/** One client's view of one session's frames: each once, in order, whatever gets lost on the way. */
export interface FrameReader {
  push(frame: LiveFrame): void;
  /** Looks into the log (and `LIVE`) for frames that have not come by themselves. */
  catchUp(): Promise<void>;
  /** True once `done` of this turn was delivered. */
  hasSeenDone(turnId: string): boolean;
  /** True when frames are to come that may get lost: those of a turn at work, or those behind a gap. */
  expectsMore(): boolean;
  close(): void;
}

interface ReaderState {
  sequence: FrameSequence | null;
  filling: Promise<void> | null;
  /** Somebody asked while the log was being read: what they know of may have come after that. */
  again: boolean;
  lastDoneTurn: string | null;
  turnOpen: boolean;
  /** The last look into the log failed. */
  failed: boolean;
  closed: boolean;
}

/** Text goes ahead of its event; of everything else the log has what came before. */
const isCommitted = ({ event }: LiveFrame): boolean => event !== 'text' && event !== 'thought';

/** A queued turn's reader starts at a frame of another turn or at its own `accepted`: nothing of its turn lies before. */
const anchors = (frame: LiveFrame, turnId: string | undefined): boolean =>
  frame.turnId !== turnId || frame.event === 'accepted';

export const createFrameReader = (options: FrameReaderOptions): FrameReader => {
  const waiting = createWaitingFrames();
  const state: ReaderState = {
    sequence: options.after === null ? null : sequenceFrom(options.after),
    filling: null,
    again: false,
    lastDoneTurn: null,
    turnOpen: false,
    failed: false,
    closed: false,
  };

  const deliver = (frame: Frame): void => {
    state.sequence = advance(state.sequence ?? sequenceFrom(0), frame);
    state.turnOpen = frame.event !== 'done';
    if (frame.event === 'done') state.lastDoneTurn = frame.turnId;
    options.deliver(frame);
  };

  const accept = (frame: LiveFrame): 'deliver' | 'drop' | 'gap' => {
    if (state.sequence === null && anchors(frame, options.turnId)) state.sequence = sequenceFrom(frame.prev);
    const verdict = judgeFrame(state.sequence ?? sequenceFrom(0), frame);
    if (verdict === 'deliver') deliver(frame);
    return verdict;
  };

  /** What came meanwhile, up to the first gap that is still there. */
  const drain = (): void => {
    const frames = waiting.take();
    const gap = frames.findIndex((frame) => state.closed || accept(frame) === 'gap');
    if (gap >= 0 && !state.closed) frames.slice(gap).forEach(waiting.add);
  };

  const deliverInTime = async (frames: readonly Frame[]): Promise<void> => {
    for (const frame of frames) {
      const room = options.room?.();
      if (room) await room;
      if (!state.closed && frame.offset > (state.sequence?.last ?? 0)) deliver(frame);
    }
  };

  const fill = async (): Promise<void> => {
    let openSince: number | null = null;
    for await (const page of options.committed(state.sequence?.last ?? 0)) {
      await deliverInTime(page.frames);
      if (state.closed) return;
      openSince = page.openSince;
      state.turnOpen = openSince !== null;
    }
    if (openSince !== null) await fillFromLive(openSince);
    drain();
  };

  const fillFromLive = async (since: number): Promise<void> => {
    for (const frame of await options.live(state.sequence?.last ?? 0, since)) {
      const room = options.room?.();
      if (room) await room;
      if (state.closed || accept(frame) === 'gap') return;
    }
  };

  const fillAll = async (): Promise<void> => {
    do {
      state.again = false;
      await fill();
      // What had no place to wait is in the log by now, or in `LIVE`.
      state.again ||= waiting.lost();
    } while (state.again && !state.closed);
    state.failed = false;
  };

  const onFailure = (error: unknown): void => {
    state.failed = true;
    options.onError(error);
  };

  const catchUp = (): Promise<void> => {
    if (state.closed) return Promise.resolve();
    if (state.filling) state.again = true;
    return (state.filling ??= fillAll()
      .catch(onFailure)
      .finally(() => (state.filling = null)));
  };

  return {
    push: (frame) => {
      if (state.closed) return;
      // After a gap everything waits, so that frames stay in order while the log is being read. A gap that
      // cannot be filled yet (text of a running attempt) waits for what is committed, not for each frame.
      const blocked = state.filling !== null || !waiting.isEmpty();
      if (!blocked && accept(frame) !== 'gap') return;
      waiting.add(frame);
      if (!blocked || isCommitted(frame)) void catchUp();
    },
    catchUp,
    hasSeenDone: (turnId) => state.lastDoneTurn === turnId,
    expectsMore: () => state.turnOpen || state.failed || !waiting.isEmpty(),
    close: () => {
      state.closed = true;
      waiting.take();
    },
  };
};
