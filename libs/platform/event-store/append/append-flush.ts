import { setTimeout as delay } from 'node:timers/promises';
import type pg from 'pg';
import {
  type BorrowedClient,
  borrowClient,
  isConnectionLost,
  isTransientDatabaseError,
  translateDatabaseError,
} from '@antiphon/database';
import { failpoint, transient } from '@antiphon/kernel';
import { appendBatch } from './append-batch.js';
import type { AppendOutcome } from './append-outcome.js';
import type { PreparedAppend } from './prepare-append.js';

const RETRY_MS = 100;

/** An event id of the batch is in the log already: rare enough to look only when the index says so. */
const isKnownEventId = (error: unknown): boolean =>
  (error as { constraint?: unknown }).constraint === 'events_event_id_key';

type Attempt =
  | { readonly done: true; readonly outcomes: AppendOutcome[] }
  /** `sent`: the batch was on its way when the connection broke, so it may have been committed. */
  | { readonly done: false; readonly sent: boolean; readonly error: unknown };

const attempt = async (
  pool: pg.Pool,
  batch: readonly PreparedAppend[],
  careful: boolean,
): Promise<Attempt> => {
  let borrowed: BorrowedClient;
  try {
    borrowed = await borrowClient(pool);
  } catch (error) {
    return { done: false, sent: false, error };
  }
  try {
    const outcomes = await appendBatch(borrowed.client, batch, careful);
    borrowed.release();
    return { done: true, outcomes };
  } catch (error) {
    const lost = isConnectionLost(error);
    borrowed.release(lost ? (error as Error) : undefined);
    return { done: false, sent: lost, error };
  }
};

/**
 * Sends a batch until its outcome is known. After a lost answer the same batch goes out again: the event ids
 * that were committed come back as `duplicate` with their first result, and the rest is appended now.
 */
const resolveBatch = async (
  pool: pg.Pool,
  batch: readonly PreparedAppend[],
  withinMs: number,
): Promise<AppendOutcome[]> => {
  const deadline = performance.now() + withinMs;
  let unknown = false;
  let careful = false;
  for (;;) {
    const tried = await attempt(pool, batch, careful);
    if (tried.done) return tried.outcomes;
    if (!careful && isKnownEventId(tried.error)) {
      careful = true;
      continue;
    }
    unknown ||= tried.sent;
    if (!unknown) throw tried.error;
    if (performance.now() > deadline)
      throw transient(
        'LOG.UNAVAILABLE',
        'the log went away during an append; whether it was written is unknown',
        {
          cause: tried.error,
          data: { outcome: 'unknown' },
        },
      );
    await delay(RETRY_MS);
  }
};

/** Flushes batches; an error that is not the server's absence is pinned to the request that causes it. */
export const createFlush = (pool: pg.Pool, resolveWithinMs: number, onAppended: () => void) => {
  const flush = async (batch: readonly PreparedAppend[]): Promise<AppendOutcome[]> => {
    try {
      return await resolveBatch(pool, batch, resolveWithinMs);
    } catch (error) {
      const translated = translateDatabaseError(error);
      if (batch.length === 1 || isConnectionLost(error))
        return batch.map(() => ({ ok: false, error: translated }));
      if (isTransientDatabaseError(error) || translated.kind === 'bug') return oneByOne(batch);
      return batch.map(() => ({ ok: false, error: translated }));
    }
  };
  const oneByOne = async (batch: readonly PreparedAppend[]): Promise<AppendOutcome[]> => {
    const outcomes: AppendOutcome[] = [];
    for (const request of batch) outcomes.push(...(await flush([request])));
    return outcomes;
  };
  return async (batch: readonly PreparedAppend[]): Promise<AppendOutcome[]> => {
    await failpoint('log.batch.taken');
    const outcomes = await flush(batch);
    await failpoint('log.batch.committed');
    if (outcomes.some((outcome) => outcome.ok && outcome.result.outcome === 'appended')) onAppended();
    return outcomes;
  };
};
