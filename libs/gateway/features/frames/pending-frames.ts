import type { LiveFrame } from '@antiphon/contracts/agent';

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
export class PendingFrames {
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
