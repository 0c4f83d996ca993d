import type pg from 'pg';
import {
  borrowClient,
  isConnectionLost,
  isTransientDatabaseError,
  translateDatabaseError,
} from '@antiphon/database';
import { failpoint, isAppError, retry, transient } from '@antiphon/kernel';
import { appendBatch } from './append-batch.js';
import type { AppendOutcome } from './append-outcome.js';
import { findContended, isExtensionLock, isLockTimeout, isRowLock } from './contended-rows.js';
import type { PreparedAppend } from './prepare-append.js';

type Batch = readonly PreparedAppend[];

/** Outcome of a request that was not written, because a row that it needs stays locked. */
export const CONTENDED = 'contended';
export type FlushOutcome = AppendOutcome | typeof CONTENDED;

const isExtended = ({ request }: PreparedAppend): boolean => request.extension !== undefined;

/** Returns true for a request whose extension reserves budget: a failpoint of its own. */
const reserves = ({ request }: PreparedAppend): boolean => request.extension?.['reserve'] !== undefined;

const withoutExtension = (append: PreparedAppend): PreparedAppend => {
  const { extension: _left, ...request } = append.request;
  return { ...append, request };
};

/** Returns the categories of the appended events, also of those that an extension added. */
const categoriesOf = (batch: Batch, outcomes: readonly FlushOutcome[]): string[] =>
  batch.flatMap(({ streams }, index) => {
    const outcome = outcomes[index];
    if (outcome === undefined || outcome === CONTENDED || !outcome.ok) return [];
    const { outcome: name, extension } = outcome.result;
    if (name !== 'appended') return [];
    const added = extension?.['category'];
    return [...streams.map(({ category }) => category), ...(typeof added === 'string' ? [added] : [])];
  });

/** Time without extensions after one waited too long for a lock, ms. It doubles up to the last. */
const FIRST_MS = 500;
const MAX_MS = 8_000;
/** Time after a pause within which another one is longer, ms. */
const FORGET_MS = 1_000;

/**
 * Time in which appends go without extensions, because a row that they need stays locked. Without
 * it, each batch would wait for that row first.
 */
export class ExtensionPause {
  private until = -Infinity;
  private lastMs = 0;

  constructor(private readonly now: () => number = () => performance.now()) {}

  isOver(): boolean {
    return this.now() >= this.until;
  }

  /** Begins a pause. It is twice as long as one that has just ended. */
  begin(): void {
    const isRepeated = this.now() - this.until < FORGET_MS;
    this.lastMs = isRepeated ? Math.min(MAX_MS, this.lastMs * 2) : FIRST_MS;
    this.until = this.now() + this.lastMs;
  }
}

const RETRY_MS = 100;
/**
 * Maximum wait of a batch for one row lock, ms. Other transactions hold a head for a few
 * milliseconds; a longer wait is one request's problem, and the others continue without it.
 */
const ROW_LOCK_MS = 300;
/** The same for a batch with extensions. It is sent without them after a longer wait, ms. */
const EXTENSION_LOCK_MS = 100;

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
    private readonly lockTimeoutMs: number | undefined,
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
    const { mayRepeatEvents } = this;
    // Sent again, it waits for the transaction of its first try.
    const lockTimeoutMs = this.isOutcomeUnknown ? undefined : this.lockTimeoutMs;
    const { client, release } = await borrowClient(this.pool);
    try {
      const outcomes = await appendBatch(client, this.batch, { mayRepeatEvents, lockTimeoutMs });
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
  private readonly pause = new ExtensionPause();

  constructor(
    private readonly pool: pg.Pool,
    /** Time within which a batch with an unknown outcome is sent again, ms. */
    private readonly resolveWithinMs: number,
    private readonly onAppended: (...categories: readonly string[]) => void,
  ) {}

  async flush(batch: Batch): Promise<FlushOutcome[]> {
    const mayExtend = batch.some(isExtended);
    await failpoint('log.batch.taken');
    if (mayExtend) await failpoint('log.extension.taken');
    const mayReserve = batch.some(reserves);
    if (mayReserve) await failpoint('log.reservation.taken');
    const outcomes = await (mayExtend ? this.writeExtended(batch) : this.write(batch, ROW_LOCK_MS));
    if (mayReserve) await failpoint('log.reservation.committed');
    if (mayExtend) await failpoint('log.extension.committed');
    await failpoint('log.batch.committed');
    const categories = new Set(categoriesOf(batch, outcomes));
    if (categories.size > 0) this.onAppended(...categories);
    return outcomes;
  }

  /** Leaves the extensions out while other transactions hold their rows for long. */
  private async writeExtended(batch: Batch): Promise<FlushOutcome[]> {
    if (this.pause.isOver()) return this.write(batch, EXTENSION_LOCK_MS);
    return this.write(batch.map(withoutExtension), ROW_LOCK_MS);
  }

  private async write(batch: Batch, lockTimeoutMs: number | undefined): Promise<FlushOutcome[]> {
    try {
      return await new PendingBatch(this.pool, batch, lockTimeoutMs).resolve(this.resolveWithinMs);
    } catch (error) {
      // An extension is never a reason to refuse an append, nor to wait for its rows.
      if (batch.some(isExtended) && !isConnectionLost(error) && !isAppError(error))
        return this.writeAfter(error, batch, lockTimeoutMs);
      if (lockTimeoutMs !== undefined && isLockTimeout(error))
        return isRowLock(error) ? this.writeUncontended(batch, error) : this.write(batch, undefined);
      const translated = translateDatabaseError(error);
      const isFromOneRequest = isTransientDatabaseError(error) || translated.kind === 'bug';
      if (batch.length > 1 && !isConnectionLost(error) && isFromOneRequest)
        return this.writeOneByOne(batch, lockTimeoutMs);
      return batch.map(() => ({ ok: false, error: translated }));
    }
  }

  /** Writes a batch whose extensions failed, or waited too long. */
  private writeAfter(
    error: unknown,
    batch: Batch,
    lockTimeoutMs: number | undefined,
  ): Promise<FlushOutcome[]> {
    if (isExtensionLock(error)) this.pause.begin();
    // The end of the log: the extensions wait for it as others do.
    else if (lockTimeoutMs === EXTENSION_LOCK_MS && isLockTimeout(error) && !isRowLock(error))
      return this.write(batch, ROW_LOCK_MS);
    return this.write(batch.map(withoutExtension), lockTimeoutMs === undefined ? undefined : ROW_LOCK_MS);
  }

  /** Writes the requests that do not need the locked row. */
  private async writeUncontended(batch: Batch, error: unknown): Promise<FlushOutcome[]> {
    if (batch.length === 1) return [CONTENDED];
    const contended = await findContended(this.pool, batch, error);
    if (contended.size === 0) return this.writeOneByOne(batch, ROW_LOCK_MS);
    const rest = batch.filter((request) => !contended.has(request));
    const written = rest.length === 0 ? [] : await this.write(rest, ROW_LOCK_MS);
    const outcomeOf = new Map(rest.map((request, index) => [request, written[index] as FlushOutcome]));
    return batch.map((request) => outcomeOf.get(request) ?? CONTENDED);
  }

  private async writeOneByOne(batch: Batch, lockTimeoutMs: number | undefined): Promise<FlushOutcome[]> {
    const outcomes: FlushOutcome[] = [];
    for (const request of batch) outcomes.push(...(await this.write([request], lockTimeoutMs)));
    return outcomes;
  }
}
