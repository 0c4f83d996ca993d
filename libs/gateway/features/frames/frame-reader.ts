import type { Frame, LiveFrame } from '@antiphon/contracts/agent';
import { advance, judgeFrame, sequenceFrom, type FrameSequence } from '@antiphon/gateway-domain';
import type { FramePage } from './frame-log.js';

/**
 * Sources of frames that a reader missed. Both return frames with an offset above `after`, in
 * order.
 */
export interface FrameSources {
  /** Reads committed frames from the log, as they are delivered. */
  readonly committed: (after: number) => AsyncIterable<FramePage>;
  /**
   * Reads text of the running attempt, which began at `since` (ms), from the short-lived `LIVE`
   * stream.
   */
  readonly live: (after: number, since: number) => Promise<readonly LiveFrame[]>;
}

export interface FrameReaderOptions extends FrameSources {
  /**
   * Offset of the client's last frame. `null`: start with the first frame of another turn, or
   * `accepted` of `turnId`.
   */
  readonly after: number | null;
  readonly turnId?: string;
  readonly deliver: (frame: Frame) => void;
  /**
   * Returns a promise while the client has no room, else undefined. The log is read no faster than
   * the client.
   */
  readonly waitForRoom?: () => Promise<void> | undefined;
  readonly onError: (error: unknown) => void;
}

const MAX_FRAMES = 4_096;
/**
 * Maximum length of the data of all pending frames as JSON, characters. One tool result may be
 * large.
 */
const MAX_CHARS = 1024 * 1024;

const charsOf = ({ data }: LiveFrame): number =>
  typeof data === 'string' ? data.length : JSON.stringify(data).length;

/**
 * Live frames that wait while a gap is filled. Frames that do not fit are dropped: the log or
 * `LIVE` has them.
 */
class PendingFrames {
  #frames: LiveFrame[] = [];
  #chars = 0;
  #hasDropped = false;

  add(frame: LiveFrame): void {
    const size = charsOf(frame);
    // After one drop the frames behind it would only wait for it, so they are dropped too.
    this.#hasDropped ||= this.#frames.length >= MAX_FRAMES || this.#chars + size > MAX_CHARS;
    if (this.#hasDropped) return;
    this.#frames.push(frame);
    this.#chars += size;
  }

  isEmpty(): boolean {
    return this.#frames.length === 0;
  }

  /** Removes and returns all frames, in the order of their offsets. */
  take(): readonly LiveFrame[] {
    const taken = this.#frames.sort((a, b) => a.offset - b.offset);
    this.#frames = [];
    this.#chars = 0;
    return taken;
  }

  /** Returns true if a frame was dropped since the last call. */
  takeDropped(): boolean {
    const hasDropped = this.#hasDropped;
    this.#hasDropped = false;
    return hasDropped;
  }
}

/** Time for which a page of the log is held while the client reads nothing, ms. */
const HOLD_MS = 1_000;

/** Returns true once `room` settles, false if it takes longer. */
const settlesWithin = async (room: Promise<void>, ms: number): Promise<boolean> => {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<false>((resolve) => (timer = setTimeout(() => resolve(false), ms)));
  const isSettled = await Promise.race([room.then(() => true), timeout]);
  clearTimeout(timer);
  return isSettled;
};

/**
 * Text is sent before its event is committed. When any other frame arrives, all frames before it
 * are in the log.
 */
const isCommitted = ({ event }: LiveFrame): boolean => event !== 'text' && event !== 'thought';

/**
 * Returns true for a frame before which no frame of the turn exists, so that a queued turn's reader
 * can start there.
 */
const isStartOf = (frame: LiveFrame, turnId: string | undefined): boolean =>
  frame.turnId !== turnId || frame.event === 'accepted';

/**
 * Delivers the frames of one session to one client, each once and in order. It fills the gaps of
 * lost live frames from the log.
 */
export class FrameReader {
  readonly #options: FrameReaderOptions;
  readonly #pending = new PendingFrames();
  #sequence: FrameSequence | null;
  #catchUp: Promise<void> | null = null;
  /** True if a catch-up was requested during another one, which may have read the log too early. */
  #isCatchUpDue = false;
  #lastDoneTurn: string | null = null;
  #isTurnOpen = false;
  #turnId = '';
  #hasFailed = false;
  #isClosed = false;

  constructor(options: FrameReaderOptions) {
    this.#options = options;
    this.#sequence = options.after === null ? null : sequenceFrom(options.after);
  }

  /** Handles a live frame. */
  push(frame: LiveFrame): void {
    if (this.#isClosed) return;
    // After a gap all frames wait, to stay in order while the log is read. A gap in the text of a
    // running attempt cannot be filled yet. It waits for the next committed frame, instead of
    // reading the log for each frame.
    const isBlocked = this.#catchUp !== null || !this.#pending.isEmpty();
    if (!isBlocked && this.#accept(frame) !== 'gap') return;
    this.#pending.add(frame);
    if (!isBlocked || isCommitted(frame)) void this.catchUp();
  }

  /** Delivers the progress of a tool call of the open turn. It is dropped while a gap is filled. */
  pushProgress(data: Frame['data']): void {
    if (this.#isClosed || !this.#isTurnOpen || this.#catchUp) return;
    const offset = this.#lastOffset();
    this.#options.deliver({ event: 'progress', data, offset, prev: offset, turnId: this.#turnId });
  }

  /**
   * Reads the log (and `LIVE`) for frames that did not arrive live. Reads `LIVE` alone for text of
   * an attempt that began at `since` (ms), where the log is known to have no other frame.
   */
  catchUp(since?: number): Promise<void> {
    if (this.#isClosed) return Promise.resolve();
    if (this.#catchUp) this.#isCatchUpDue = true;
    return (this.#catchUp ??= this.#fillUntilCurrent(since)
      .catch((error: unknown) => {
        this.#hasFailed = true;
        this.#options.onError(error);
      })
      .finally(() => (this.#catchUp = null)));
  }

  /** Returns true once `done` of this turn was delivered. */
  hasSeenDone(turnId: string): boolean {
    return this.#lastDoneTurn === turnId;
  }

  /** Returns true if further frames are due that may get lost: of an open turn, or after a gap. */
  expectsMore(): boolean {
    return this.#isTurnOpen || this.#hasFailed || !this.#pending.isEmpty();
  }

  /**
   * Returns true if frames up to `lastOffset` of the log were not all delivered, or the last
   * catch-up left a gap or failed.
   */
  isBehind(lastOffset: number): boolean {
    return lastOffset > this.#lastOffset() || this.#hasFailed || !this.#pending.isEmpty();
  }

  close(): void {
    this.#isClosed = true;
    this.#pending.take();
  }

  #lastOffset(): number {
    return this.#sequence?.last ?? 0;
  }

  #deliver(frame: Frame): void {
    this.#sequence = advance(this.#sequence ?? sequenceFrom(0), frame);
    this.#isTurnOpen = frame.event !== 'done';
    this.#turnId = frame.turnId;
    if (frame.event === 'done') this.#lastDoneTurn = frame.turnId;
    this.#options.deliver(frame);
  }

  #accept(frame: LiveFrame): 'deliver' | 'drop' | 'gap' {
    if (this.#sequence === null && isStartOf(frame, this.#options.turnId))
      this.#sequence = sequenceFrom(frame.prev);
    const verdict = judgeFrame(this.#sequence ?? sequenceFrom(0), frame);
    if (verdict === 'deliver') this.#deliver(frame);
    return verdict;
  }

  async #fillUntilCurrent(since?: number): Promise<void> {
    let first = since;
    do {
      this.#isCatchUpDue = false;
      const room = this.#options.waitForRoom?.();
      if (room) await room;
      if (first === undefined) await this.#fill();
      else await this.#fillFromLive(first).then(() => this.#drainPending());
      first = undefined;
      // Dropped frames are in the log or in `LIVE` by now.
      this.#isCatchUpDue ||= this.#pending.takeDropped();
    } while (this.#isCatchUpDue && !this.#isClosed);
    this.#hasFailed = false;
  }

  async #fill(): Promise<void> {
    let openSince: number | null = null;
    for await (const page of this.#options.committed(this.#lastOffset())) {
      const isComplete = await this.#deliverAtPace(page.frames);
      if (this.#isClosed) return;
      // Releases the page of a client that reads nothing. The rest is read again when it has room.
      if (!isComplete) return void (this.#isCatchUpDue = true);
      openSince = page.openSince;
      this.#isTurnOpen = openSince !== null;
    }
    if (openSince !== null) await this.#fillFromLive(openSince);
    this.#drainPending();
  }

  /**
   * Delivers frames as fast as the client reads. Returns false if the client reads nothing for some
   * time.
   */
  async #deliverAtPace(frames: readonly Frame[]): Promise<boolean> {
    for (const frame of frames) {
      const room = this.#options.waitForRoom?.();
      if (room && !(await settlesWithin(room, HOLD_MS))) return false;
      if (!this.#isClosed && frame.offset > this.#lastOffset()) this.#deliver(frame);
    }
    return true;
  }

  async #fillFromLive(since: number): Promise<void> {
    for (const frame of await this.#options.live(this.#lastOffset(), since)) {
      const room = this.#options.waitForRoom?.();
      if (room) await room;
      if (this.#isClosed || this.#accept(frame) === 'gap') return;
    }
  }

  /** Delivers the pending frames up to the first gap that remains. */
  #drainPending(): void {
    const frames = this.#pending.take();
    const gap = frames.findIndex((frame) => this.#isClosed || this.#accept(frame) === 'gap');
    if (gap >= 0 && !this.#isClosed) for (const frame of frames.slice(gap)) this.#pending.add(frame);
  }
}
