import type pg from 'pg';
import {
  borrowClient,
  isConnectionLost,
  isTransientDatabaseError,
  translateDatabaseError,
} from '@antiphon/database';
import { failpoint, retry, transient } from '@antiphon/kernel';
import { appendBatch } from './append-batch.js';
import type { AppendOutcome } from './append-outcome.js';
import type { PreparedAppend } from './prepare-append.js';

type Batch = readonly PreparedAppend[];

const RETRY_MS = 100;

/**
 * True for an event id that is in the log. It is rare, so an append checks only after this error.
 */
const isKnownEventId = (error: unknown): boolean =>
  (error as { constraint?: unknown }).constraint === 'events_event_id_key';

/** A batch that is sent until its outcome is known. */
class PendingBatch {
  private mayRepeatEvents = false;
  /** The connection broke after the batch was sent, so the server may have committed it. */
  private isOutcomeUnknown = false;

  constructor(
    private readonly pool: pg.Pool,
    private readonly batch: Batch,
  ) {}

  /**
   * Sends the batch. After a lost response it sends the same batch again: committed events return
   * as `duplicate` with their first result, and the others are appended now.
   */
  async resolve(withinMs: number): Promise<AppendOutcome[]> {
    try {
      return await retry(() => this.send(), {
        firstMs: RETRY_MS,
        maxMs: RETRY_MS,
        withinMs,
        isRetryable: () => this.isOutcomeUnknown,
      });
    } catch (cause) {
      if (!this.isOutcomeUnknown) throw cause;
      const message = 'the log became unreachable during an append; whether it was written is unknown';
      throw transient('LOG.UNAVAILABLE', message, { cause, data: { outcome: 'unknown' } });
    }
  }

  private async send(): Promise<AppendOutcome[]> {
    const { client, release } = await borrowClient(this.pool);
    try {
      const outcomes = await appendBatch(client, this.batch, this.mayRepeatEvents);
      release();
      return outcomes;
    } catch (error) {
      const isLost = isConnectionLost(error);
      release(isLost ? (error as Error) : undefined);
      this.isOutcomeUnknown ||= isLost;
      if (this.mayRepeatEvents || !isKnownEventId(error)) throw error;
      this.mayRepeatEvents = true;
      return this.send();
    }
  }
}

/** Writes batches of the group commit and assigns an error to the request that causes it. */
export class AppendFlusher {
  constructor(
    private readonly pool: pg.Pool,
    /** Time within which a batch with an unknown outcome is sent again, ms. */
    private readonly resolveWithinMs: number,
    private readonly onAppended: () => void,
  ) {}

  async flush(batch: Batch): Promise<AppendOutcome[]> {
    await failpoint('log.batch.taken');
    const outcomes = await this.write(batch);
    await failpoint('log.batch.committed');
    if (outcomes.some((outcome) => outcome.ok && outcome.result.outcome === 'appended')) this.onAppended();
    return outcomes;
  }

  private async write(batch: Batch): Promise<AppendOutcome[]> {
    try {
      return await new PendingBatch(this.pool, batch).resolve(this.resolveWithinMs);
    } catch (error) {
      const translated = translateDatabaseError(error);
      const isFromOneRequest = isTransientDatabaseError(error) || translated.kind === 'bug';
      if (batch.length > 1 && !isConnectionLost(error) && isFromOneRequest) return this.writeOneByOne(batch);
      return batch.map(() => ({ ok: false, error: translated }));
    }
  }

  private async writeOneByOne(batch: Batch): Promise<AppendOutcome[]> {
    const outcomes: AppendOutcome[] = [];
    for (const request of batch) outcomes.push(...(await this.write([request])));
    return outcomes;
  }
}
