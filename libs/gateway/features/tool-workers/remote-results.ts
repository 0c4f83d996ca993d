import { createHash } from 'node:crypto';
import { MAX_INLINE_RESULT_BYTES, MAX_RESULT_BYTES, RESULT_PART_BYTES } from '@antiphon/contracts/sandbox';
import type { RemoteCallEnd } from '@antiphon/contracts/sandbox';
import { HeldBytes, exceedsJsonBytes } from '@antiphon/kernel';

/** Time for which a result waits for its caller, ms. */
const KEEP_MS = 60_000;
/** Maximum size of all results that wait, and of all that are not complete, each. */
const MAX_BYTES = 4 * MAX_RESULT_BYTES;

/** Results of programs that are larger than a frame or a reply. They are in memory only. */
export class RemoteResults {
  readonly #held: HeldBytes;
  #partialBytes = 0;

  /** `now` is a steady clock. */
  constructor(
    now: () => number = () => performance.now(),
    private readonly maxBytes = MAX_BYTES,
  ) {
    this.#held = new HeldBytes(now, KEEP_MS, maxBytes);
  }

  /** Bytes of results that are not complete. */
  get partialBytes(): number {
    return this.#partialBytes;
  }

  /** Reserves room for a part of a result. Returns false if there is none. */
  reserve(bytes: number): boolean {
    if (this.#partialBytes + bytes > this.maxBytes) return false;
    this.#partialBytes += bytes;
    return true;
  }

  unreserve(bytes: number): void {
    this.#partialBytes -= bytes;
  }

  /** Returns the end of an attempt with a result. Holds a result that is too large for a reply. */
  endWith(attemptId: string, content: string, isError: boolean): RemoteCallEnd {
    if (!exceedsJsonBytes(content, MAX_INLINE_RESULT_BYTES)) return { end: 'result', content, isError };
    const bytes = Buffer.from(content);
    const size = bytes.length;
    if (size > MAX_RESULT_BYTES || !this.#held.hold(attemptId, bytes))
      return { end: 'too_large', bytes: size };
    return { end: 'held', size, digest: createHash('sha256').update(bytes).digest('hex'), isError };
  }

  /** Returns a part of a result, or null for one that is gone. */
  read(attemptId: string, offset: number): Buffer | null {
    return this.#held.read(attemptId, offset, RESULT_PART_BYTES);
  }

  release(attemptId: string): void {
    this.#held.release(attemptId);
  }
}
