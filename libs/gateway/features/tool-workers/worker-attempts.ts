import { MAX_RESULT_BYTES } from '@antiphon/contracts/sandbox';
import type { RemoteCallEnd } from '@antiphon/contracts/sandbox';
import type { RemoteResults } from './remote-results.js';

interface Attempt {
  readonly callId: string;
  readonly sessionId: string;
  readonly name: string;
  readonly end: (end: RemoteCallEnd) => void;
  /** Time of the last progress that was passed on, ms. */
  progressAt: number;
  /** Parts of its result that have come, and their bytes. */
  readonly parts: string[];
  bytes: number;
}

/** Maximum number of parts of a result. */
const MAX_PARTS = 2_048;

/** Shortest time between two reports of progress of one call that are passed on, ms. */
const PROGRESS_MS = 50;

/** Attempts of calls that one program has. */
export class WorkerAttempts {
  readonly #attempts = new Map<string, Attempt>();

  constructor(private readonly results: RemoteResults) {}

  get size(): number {
    return this.#attempts.size;
  }

  /**
   * Adds an attempt. The promise resolves at its end. `onTimeout` is called if that is its timeout.
   */
  add(
    attemptId: string,
    call: Pick<Attempt, 'callId' | 'sessionId' | 'name'>,
    timeoutMs: number,
    onTimeout: () => void,
  ): Promise<RemoteCallEnd> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => {
        onTimeout();
        this.end(attemptId, { end: 'timeout' });
      }, timeoutMs);
      const end = (ended: RemoteCallEnd): void => {
        clearTimeout(timer);
        resolve(ended);
      };
      this.#attempts.set(attemptId, { ...call, end, progressAt: -Infinity, parts: [], bytes: 0 });
    });
  }

  /** Ends an attempt. Returns false if there is none of this id: its call was given up. */
  end(attemptId: string, end: RemoteCallEnd): boolean {
    const attempt = this.#attempts.get(attemptId);
    if (!attempt) return false;
    this.#attempts.delete(attemptId);
    this.results.unreserve(attempt.bytes);
    attempt.end(end);
    return true;
  }

  /** Adds a part of the result of an attempt. Returns false if there is none of this id. */
  addPart(attemptId: string, part: string): boolean {
    const attempt = this.#attempts.get(attemptId);
    if (!attempt) return false;
    const bytes = Buffer.byteLength(part);
    const all = attempt.bytes + bytes;
    if (all > MAX_RESULT_BYTES || attempt.parts.length >= MAX_PARTS || !this.results.reserve(bytes))
      return this.end(attemptId, { end: 'too_large', bytes: all });
    attempt.bytes = all;
    attempt.parts.push(part);
    return true;
  }

  /** Ends an attempt with the last part of its result. Returns false if there is none of this id. */
  complete(attemptId: string, last: string, isError: boolean): boolean {
    const attempt = this.#attempts.get(attemptId);
    if (!attempt) return false;
    const content = attempt.parts.join('') + last;
    return this.end(attemptId, this.results.endWith(attemptId, content, isError));
  }

  /** Returns the call of an attempt. */
  find(attemptId: string): Pick<Attempt, 'callId' | 'sessionId' | 'name'> | undefined {
    return this.#attempts.get(attemptId);
  }

  /** Returns the call of an attempt whose progress is passed on now; undefined for none. */
  takeProgress(attemptId: string): Pick<Attempt, 'callId' | 'sessionId' | 'name'> | undefined {
    const attempt = this.#attempts.get(attemptId);
    const now = performance.now();
    if (!attempt || now - attempt.progressAt < PROGRESS_MS) return undefined;
    attempt.progressAt = now;
    return attempt;
  }

  /** Ends all attempts as lost: the program is gone. */
  loseAll(): number {
    const all = [...this.#attempts.keys()];
    for (const attemptId of all) this.end(attemptId, { end: 'lost' });
    return all.length;
  }
}
