import { isAppError, retry } from '@antiphon/kernel';
import type { Logger } from '@antiphon/observability';

/** Short, because a killed service is back within a second, and a refusal costs little. */
const BACKOFF = { firstMs: 50, maxMs: 250 };
const isTransient = (error: unknown): boolean => isAppError(error) && error.kind === 'transient';

/**
 * Retries work that fails with a transient error, with backoff and without a limit: an accepted
 * turn waits for services that are unavailable. Throws any other error, and `Stopped`.
 */
export const retryTransient = <T>(work: () => Promise<T>, signal: AbortSignal, logger: Logger): Promise<T> =>
  retry(work, {
    ...BACKOFF,
    signal,
    isRetryable: isTransient,
    // Logged at the first attempt only: many turns wait during an outage.
    onRetry: (error, attempt) => {
      if (attempt === 1) logger.warn({ err: error }, 'turn waiting for dependency');
    },
  });
