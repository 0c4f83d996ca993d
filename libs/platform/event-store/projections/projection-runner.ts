import type pg from 'pg';
import { ALL_WORKSPACES, createPipelinedPool, createWorkStarts } from '@antiphon/database';
import type { WorkStarts } from '@antiphon/database';
import { backoffDelay, createWakeSignal, isAppError, transient, withTimeout } from '@antiphon/kernel';
import type { Logger } from '@antiphon/observability';
import { CarefulBatches } from './careful-batches.js';
import { type BatchResult, parkLostEvent, runBatch } from './projection-batch.js';
import { ensureCheckpoint, PROJECTION_PRELUDE } from './projection-checkpoint.js';
import type { HandleEvents, ProjectionSource } from './projection-definition.js';
import { observeProjectionLag } from './projection-progress.js';
import { ProjectionRetries } from './projection-retries.js';
import { type ProjectionSnapshot, readSnapshot, type SkippedRange } from './projection-snapshot.js';
import { joinSharedTail, type SharedTail } from './shared-tail.js';

export interface ProjectionOptions {
  readonly pool: pg.Pool;
  /** Name of the checkpoint; a new name reads the log from its beginning. */
  readonly name: string;
  readonly categories: readonly string[];
  readonly handle: HandleEvents;
  readonly logger: Logger;
  /**
   * Subscribes to notifications that the log has grown by events of the categories, such as
   * `onLogNotification`, and returns a function that unsubscribes.
   */
  readonly subscribe?: (wake: () => void, categories: readonly string[]) => () => void;
  /** Interval of reads without a notification, ms. */
  readonly pollMs?: number;
  readonly batchSize?: number;
  /** Delays before the retries of an event that failed, ms. Then its stream stays parked. */
  readonly retryDelaysMs?: readonly number[];
  /** Counts of starts. Default: those of the database. */
  readonly starts?: WorkStarts;
}

export interface RunningProjection {
  /** Stops after the current transaction; waits for a position then reject. */
  stop(): Promise<void>;
  /** Resolves once this or another process has applied or parked every event up to `position`. */
  waitForPosition(position: number): Promise<void>;
  /** Returns the last position known to be applied, and whether the last attempt failed. */
  status(): { readonly position: number; readonly isFailing: boolean };
}

/** Callers that wait until a growing position has reached theirs. */
class PositionWaiters {
  private reached = 0;
  private refusal: Error | undefined;
  private readonly waiting = new Set<{
    readonly position: number;
    readonly resolve: () => void;
    readonly reject: (error: Error) => void;
  }>();

  get position(): number {
    return this.reached;
  }

  get isEmpty(): boolean {
    return this.waiting.size === 0;
  }

  advanceTo(position: number): void {
    this.reached = Math.max(this.reached, position);
    for (const waiter of this.waiting)
      if (waiter.position <= this.reached) {
        this.waiting.delete(waiter);
        waiter.resolve();
      }
  }

  waitFor(position: number): Promise<void> {
    return new Promise((resolve, reject) => {
      if (position <= this.reached) resolve();
      else if (this.refusal) reject(this.refusal);
      else this.waiting.add({ position, resolve, reject });
    });
  }

  /** Rejects present and future callers. */
  rejectAll(error: Error): void {
    this.refusal = error;
    for (const waiter of this.waiting) waiter.reject(error);
    this.waiting.clear();
  }
}

/** Delays after failures in a row. */
const BACKOFF = { firstMs: 100, maxMs: 5_000 };
/** Poll interval while a caller waits for another process, or after that process won a batch. */
const CONTENDED_POLL_MS = 50;
/**
 * Maximum age of a stored checkpoint behind a log that has nothing for the projection. A
 * transaction for each such read would cost too much.
 */
const SKIP_WITHIN_MS = 1_000;

/** Running projections of this process, by the pool of their service. */
const groups = new WeakMap<pg.Pool, Set<ProjectionRunner>>();

const groupOf = (pool: pg.Pool): Set<ProjectionRunner> => {
  const group = groups.get(pool) ?? new Set<ProjectionRunner>();
  groups.set(pool, group);
  return group;
};

/** Applies the log to one projection until it is stopped. */
class ProjectionRunner implements RunningProjection {
  private readonly source: ProjectionSource;
  private readonly ownPool: pg.Pool;
  private readonly tail: SharedTail;
  private readonly pollMs: number;
  private readonly wakeSignal = createWakeSignal();
  private readonly waiters = new PositionWaiters();
  private readonly retries: ProjectionRetries;
  private readonly careful: CarefulBatches;
  private readonly running: Promise<void>;
  private readonly unsubscribe: (() => void) | undefined;
  private readonly stopObserving: () => void;
  private isStopped = false;
  private isPrepared = false;
  private failures = 0;
  /** Another process won the last batch. */
  private isContended = false;
  private skipped: SkippedRange = { from: 0, to: 0 };
  private movedAt = -Infinity;
  private readonly group: Set<ProjectionRunner>;

  constructor(private readonly options: ProjectionOptions) {
    const { pool, name, categories, handle, logger, batchSize = 500, retryDelaysMs } = options;
    // Retries are rare and wait for the disk, so they use the shared pool.
    this.ownPool = createPipelinedPool(pool, {
      ...{ prelude: PROJECTION_PRELUDE, workspace: ALL_WORKSPACES, logger },
    });
    this.source = { pool: this.ownPool, name, categories, handle, batchSize, retryDelaysMs };
    this.retries = new ProjectionRetries({ ...this.source, pool }, logger);
    this.careful = new CarefulBatches(options.starts ?? createWorkStarts(pool), name);
    this.pollMs = options.pollMs ?? 1_000;
    this.unsubscribe = options.subscribe?.(this.wakeSignal.wake, categories);
    const { tail, leave } = joinSharedTail(pool, { name, categories });
    this.tail = tail;
    this.group = groupOf(pool).add(this);
    this.running = this.run().finally(() => Promise.all([this.ownPool.end(), leave()]));
    this.stopObserving = observeProjectionLag(pool, name, () => this.waiters.position);
  }

  async stop(): Promise<void> {
    this.isStopped = true;
    this.group.delete(this);
    this.stopObserving();
    this.unsubscribe?.();
    this.wakeSignal.wake();
    await this.releaseCounts();
    await this.running;
    await this.releaseCounts(); // of a start that had begun by then
    const message = `projection ${this.source.name} has stopped`;
    this.waiters.rejectAll(transient('LOG.PROJECTION_STOPPED', message));
  }

  /** A count that stays costs one careful batch. */
  private async releaseCounts(): Promise<void> {
    await this.careful.release().catch((err: unknown) => {
      this.options.logger.warn(
        { work: 'projection', err, projection: this.source.name },
        'work not released',
      );
    });
  }

  waitForPosition(position: number): Promise<void> {
    this.wakeSignal.wake();
    return this.waiters.waitFor(position);
  }

  status(): { readonly position: number; readonly isFailing: boolean } {
    return { position: this.waiters.position, isFailing: this.failures > 0 };
  }

  /** True also after the caller has ended its pool: the runner's own connection must close too. */
  private get isStopping(): boolean {
    return this.isStopped || this.options.pool.ending;
  }

  private async run(): Promise<void> {
    for (let isWoken = true; !this.isStopping;) {
      let delayMs: number;
      try {
        // A poll takes what another projection of the process has just read.
        delayMs = await this.runOnce(isWoken ? 0 : this.pollMs / 2);
      } catch (error) {
        delayMs = this.countFailure(error);
      }
      if (!this.isStopping) isWoken = await this.wakeSignal.wait(delayMs);
    }
  }

  /** Applies all new events and due retries. Returns the time until the next run, ms. */
  private async runOnce(maxAgeMs: number): Promise<number> {
    if (!this.isPrepared) {
      await this.careful.begin(await ensureCheckpoint(this.options.pool, this.source.name));
      await this.retries.retryAll();
      this.isPrepared = true;
    }
    const pollDelayMs = this.pollDelayAfter(await this.catchUp(maxAgeMs));
    this.failures = 0;
    return Math.min(pollDelayMs, await this.retries.retryDue());
  }

  /** Applies events up to the head of the log, or until another process wins a batch. */
  private async catchUp(maxAgeMs: number): Promise<'done' | 'contended'> {
    for (let ageMs = this.isContended ? 0 : maxAgeMs; ; ageMs = 0) {
      const snapshot = await this.readNext(ageMs);
      this.waiters.advanceTo(snapshot.position);
      if (snapshot.hasParkedStreams) this.retries.schedule();
      if (snapshot.upTo <= snapshot.position || this.isStopping) return 'done';
      if (this.skip(snapshot)) {
        if (snapshot.upTo < snapshot.head) continue;
        return 'done';
      }
      const isCareful = this.careful.isCareful(snapshot);
      const state = isCareful ? await this.applyFirst(snapshot) : await this.applyBatch(snapshot);
      if (state === 'contended') return 'contended';
      if (isCareful) continue;
      await this.careful.end();
      // A later append sends its own notification.
      if (state === 'caught_up') return 'done';
    }
  }

  /** Reads the next events, from the shared tail if it has them. */
  private async readNext(maxAgeMs: number): Promise<ProjectionSnapshot> {
    // An older read shows a checkpoint that this projection has moved since.
    const ageMs = Math.min(maxAgeMs, performance.now() - this.movedAt);
    const shared = await this.tail.readSnapshot(this.source, this.skipped, ageMs);
    return shared ?? readSnapshot(this.source, this.skipped);
  }

  /**
   * Skips a range without events for this projection, and returns false once the stored checkpoint
   * is due to move. Waiting callers learn of the new position at once.
   */
  private skip({ events, position, upTo }: ProjectionSnapshot): boolean {
    if (events.length > 0) return false;
    this.skipped = { from: position, to: upTo };
    this.waiters.advanceTo(upTo);
    return performance.now() - this.movedAt < SKIP_WITHIN_MS;
  }

  /** Applies the first event alone, or parks its stream: an earlier process may have ended by it. */
  private applyFirst(snapshot: ProjectionSnapshot): Promise<BatchResult['state']> {
    const { name } = this.source;
    return this.careful.applyFirst(
      snapshot,
      (first) => this.applyBatch(first),
      async (first, event, lost) => {
        const { workspace, streamId, position, eventId, type } = event;
        const fields = { projection: name, workspace, streamId, position, eventId, type, lost, alert: true };
        const state = await parkLostEvent(this.source, first, event, lost);
        this.isContended = state === 'contended';
        if (state !== 'contended') this.options.logger.error(fields, 'event ends its process, stream parked');
        return state;
      },
    );
  }

  private async applyBatch(snapshot: ProjectionSnapshot): Promise<BatchResult['state']> {
    const result = await runBatch(this.source, snapshot, this.isContended);
    this.isContended = result.state === 'contended';
    if (this.isContended) return 'contended';
    this.movedAt = performance.now();
    this.skipped = { from: result.position, to: result.position };
    this.waiters.advanceTo(result.position);
    this.reportParked(result);
    return result.state;
  }

  private reportParked({ parked }: BatchResult): void {
    for (const { event, error } of parked) {
      const { workspace, streamId, position, eventId, type } = event;
      this.options.logger.warn(
        { err: error, projection: this.source.name, workspace, streamId, position, eventId, type },
        'event projection failed, retry scheduled',
      );
    }
    if (parked.length > 0) this.retries.schedule();
  }

  private pollDelayAfter(outcome: 'done' | 'contended'): number {
    if (outcome === 'contended' || !this.waiters.isEmpty) return Math.min(this.pollMs, CONTENDED_POLL_MS);
    const hasSkipped = this.skipped.to > this.skipped.from;
    return hasSkipped ? Math.min(this.pollMs, SKIP_WITHIN_MS) : this.pollMs;
  }

  /** Logs a failure and returns the delay before the next attempt, ms. */
  private countFailure(error: unknown): number {
    this.failures++;
    const fields = { err: error, projection: this.source.name, failures: this.failures };
    const isOutage = isAppError(error) && error.kind === 'transient';
    // An outage is logged once, a bug at each attempt.
    if (!isOutage) this.options.logger.error(fields, 'projection failed, retry scheduled');
    else if (this.failures === 1) this.options.logger.warn(fields, 'projection waits for the database');
    return backoffDelay(BACKOFF, this.failures - 1);
  }
}

/**
 * Starts a projection: applies the log to its rows as it grows, by notification and by polling.
 * Several processes may run the same one. A batch belongs to one process, so every event is applied
 * once.
 */
export const runProjection = (options: ProjectionOptions): RunningProjection => new ProjectionRunner(options);

/**
 * Resolves once every projection that runs on `pool` in this process has reached a position. One
 * whose last attempt failed is not waited for.
 *
 * Throws transient `LOG.PROJECTION_BEHIND` if one has not reached it within `timeoutMs`.
 */
export const reachPosition = async (pool: pg.Pool, position: number, timeoutMs: number): Promise<void> => {
  const healthy = [...groupOf(pool)].filter((projection) => !projection.status().isFailing);
  const reached = Promise.all(healthy.map((projection) => projection.waitForPosition(position)));
  await withTimeout(reached, timeoutMs, () =>
    transient('LOG.PROJECTION_BEHIND', `the read model has not reached position ${position} of the log yet`, {
      data: { position, retryAfterSeconds: 1 },
    }),
  );
};
