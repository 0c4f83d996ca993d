import { sleep } from './sleep.js';
import { abortable } from './timeout.js';

/** Delays between attempts, ms. */
export interface Backoff {
  readonly firstMs: number;
  readonly maxMs: number;
}

/**
 * Returns the delay before retry number `retry`, from 0: exponential, doubled each time, at most
 * `maxMs`.
 */
export const backoffDelay = ({ firstMs, maxMs }: Backoff, retry: number): number =>
  Math.min(maxMs, firstMs * 2 ** Math.min(retry, 30));

export interface RetryOptions extends Backoff {
  /** False for an error that a later attempt cannot repair: it is thrown at once. */
  readonly isRetryable: (error: unknown) => boolean;
  /** Ends the attempts: `retry` rejects with the signal's reason at once. */
  readonly signal?: AbortSignal;
  /**
   * Time after which no further attempt begins, ms; the last error is thrown then. Without it,
   * attempts never end.
   */
  readonly withinMs?: number;
  /** Called before each wait. `attempt` counts from 1. */
  readonly onRetry?: (error: unknown, attempt: number) => void;
}

/** Calls `work` until it succeeds, with exponential backoff between attempts. */
export const retry = async <T>(work: () => Promise<T>, options: RetryOptions): Promise<T> => {
  const { isRetryable, signal, withinMs = Infinity, onRetry } = options;
  const startedAt = performance.now();
  for (let attempt = 1; ; attempt++) {
    const delayMs = backoffDelay(options, attempt - 1);
    try {
      return await (signal ? abortable(work(), signal) : work());
    } catch (error) {
      if (signal?.aborted) throw signal.reason as Error;
      if (!isRetryable(error) || performance.now() - startedAt + delayMs > withinMs) throw error;
      onRetry?.(error, attempt);
    }
    await sleep(delayMs, signal);
  }
};
