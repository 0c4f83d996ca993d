import type { RemoteCallEnd } from '@antiphon/contracts/sandbox';

interface Attempt {
  readonly callId: string;
  readonly sessionId: string;
  readonly name: string;
  readonly end: (end: RemoteCallEnd) => void;
  /** Time of the last progress that was passed on, ms. */
  progressAt: number;
}

/** Shortest time between two reports of progress of one call that are passed on, ms. */
const PROGRESS_MS = 50;

/** Attempts of calls that one program has. */
export class WorkerAttempts {
  readonly #attempts = new Map<string, Attempt>();

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
      this.#attempts.set(attemptId, { ...call, end, progressAt: -Infinity });
    });
  }

  /** Ends an attempt. Returns false if there is none of this id: its call was given up. */
  end(attemptId: string, end: RemoteCallEnd): boolean {
    const attempt = this.#attempts.get(attemptId);
    if (!attempt) return false;
    this.#attempts.delete(attemptId);
    attempt.end(end);
    return true;
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
