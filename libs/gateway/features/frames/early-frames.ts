import type { LiveFrame } from '@antiphon/contracts/agent';

const MAX_FRAMES = 64;
const MAX_BYTES = 64 * 1024;
/** Time between the first frame of a turn and the follower that its request adds, at most, ms. */
const KEEP_MS = 1_000;

/**
 * Frames of a session's newest turn that came before its follower: the agent publishes them as soon
 * as it has replied. Bounded in number, bytes and time. The log has those that do not fit.
 */
export class EarlyFrames {
  #turnId: string | null = null;
  #frames: LiveFrame[] = [];
  #bytes = 0;
  #expiry: NodeJS.Timeout | undefined;

  /** @param bytes size of the message */
  add(frame: LiveFrame, bytes: number): void {
    if (frame.turnId !== this.#turnId) this.clear();
    this.#turnId = frame.turnId;
    this.#bytes += bytes;
    if (this.#frames.length >= MAX_FRAMES || this.#bytes > MAX_BYTES) return;
    this.#frames.push(frame);
    this.#expiry ??= setTimeout(() => this.clear(), KEEP_MS).unref();
  }

  /** Removes and returns the frames of a turn, oldest first. */
  take(turnId: string): readonly LiveFrame[] {
    if (turnId !== this.#turnId) return [];
    const taken = this.#frames;
    this.clear();
    return taken;
  }

  clear(): void {
    clearTimeout(this.#expiry);
    this.#expiry = undefined;
    this.#turnId = null;
    this.#frames = [];
    this.#bytes = 0;
  }
}
