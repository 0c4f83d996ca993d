import type pg from 'pg';
import { transient, isAppError } from '@antiphon/kernel';
import type { Logger } from '@antiphon/observability';
import { type BatchResult, runBatch } from './projection-batch.js';
import { ensureCheckpoint, readProgress } from './projection-checkpoint.js';
import { replayParked } from './projection-parking.js';
import { createWaiters } from './position-waiters.js';
import type { HandleEvents, ProjectionSource } from './projection-source.js';
import { createSignal } from './wake-signal.js';

export interface ProjectionOptions {
  readonly pool: pg.Pool;
  /** Names the checkpoint; a new name reads the log from its beginning. */
  readonly name: string;
  readonly categories: readonly string[];
  /** Applies events, in order of position and each once, in the transaction that moves the checkpoint. */
  readonly handle: HandleEvents;
  readonly logger: Logger;
  /** Subscribes to what tells that the log has grown, e.g. `hint.log`; answers how to unsubscribe. */
  readonly hint?: (wake: () => void) => () => void;
  /** How often to look without a hint, in ms. */
  readonly pollMs?: number;
  readonly batchSize?: number;
}

export interface RunningProjection {
  /** Ends after the transaction that is under way; those who wait for a position are refused. */
  stop(): Promise<void>;
  /** Resolves once every event up to this position is applied or parked, by this process or another. */
  caughtUp(position: number): Promise<void>;
  /** The last position known to be applied, and whether the last look at the log failed. */
  status(): { readonly position: number; readonly failing: boolean };
}

const MAX_BACKOFF_MS = 5_000;
/** How often to look while somebody waits for what another process applies. */
const WAITED_FOR_MS = 50;

interface Loop {
  readonly source: ProjectionSource;
  readonly logger: Logger;
  readonly pollMs: number;
  readonly signal: ReturnType<typeof createSignal>;
  readonly waiters: ReturnType<typeof createWaiters>;
  readonly stopping: () => boolean;
  failures: number;
}

const report = (loop: Loop, { parked }: BatchResult): void => {
  for (const { event, error } of parked) {
    const { workspace, streamId, position, eventId, type } = event;
    loop.logger.error(
      { err: error, projection: loop.source.name, workspace, streamId, position, eventId, type },
      'an event could not be projected: its stream is parked, the others go on',
    );
  }
};

/** Applies what is there; afterwards the position is the log's end, or another process is at it. */
const catchUp = async (loop: Loop): Promise<void> => {
  const { source, waiters, stopping } = loop;
  for (;;) {
    const { position, head } = await readProgress(source.pool, source.name);
    waiters.reached(position);
    if (position >= head || stopping()) return;
    const result = await runBatch(source);
    if (result.state === 'elsewhere') return;
    waiters.reached(result.position);
    report(loop, result);
    // What is appended from here on brings a hint of its own.
    if (result.state === 'caught_up') return;
  }
};

const retryParked = async ({ source, logger }: Loop): Promise<void> => {
  const { replayed, stillParked } = await replayParked(source);
  if (replayed > 0) logger.info({ projection: source.name, replayed }, 'parked streams were replayed');
  for (const { workspace, streamId, error } of stillParked)
    logger.error(
      { err: error, projection: source.name, workspace, streamId },
      'a parked stream stays parked',
    );
};

const nextDelay = (loop: Loop, error: unknown): number => {
  loop.failures++;
  const fields = { err: error, projection: loop.source.name, failures: loop.failures };
  const expected = isAppError(error) && error.kind === 'transient';
  // Once an outage, not once a try; a bug is loud every time.
  if (!expected) loop.logger.error(fields, 'a projection cannot go on; it tries again');
  else if (loop.failures === 1) loop.logger.warn(fields, 'a projection waits for the database');
  return Math.min(MAX_BACKOFF_MS, 50 * 2 ** Math.min(loop.failures, 10));
};

const run = async (loop: Loop): Promise<void> => {
  let prepared = false;
  while (!loop.stopping()) {
    let delay = loop.pollMs;
    try {
      if (!prepared) {
        await ensureCheckpoint(loop.source.pool, loop.source.name);
        await retryParked(loop);
        prepared = true;
      }
      await catchUp(loop);
      loop.failures = 0;
      if (loop.waiters.waiting()) delay = Math.min(delay, WAITED_FOR_MS);
    } catch (error) {
      delay = nextDelay(loop, error);
    }
    if (!loop.stopping()) await loop.signal.wait(delay);
  }
};

/**
 * Keeps the rows of one projection equal to the log: live by hint, by polling where a hint is lost. Several
 * processes may run the same one; each transaction is one process's, so every event is applied once.
 */
export const runProjection = (options: ProjectionOptions): RunningProjection => {
  const { pool, name, categories, handle, logger, hint, pollMs = 1_000, batchSize = 500 } = options;
  let stopped = false;
  const signal = createSignal();
  const waiters = createWaiters();
  const source = { pool, name, categories, handle, batchSize };
  const loop: Loop = { source, logger, pollMs, signal, waiters, stopping: () => stopped, failures: 0 };
  const unsubscribe = hint?.(signal.wake);
  const running = run(loop);
  return {
    stop: async () => {
      stopped = true;
      unsubscribe?.();
      signal.wake();
      await running;
      waiters.refuse(transient('LOG.PROJECTION_STOPPED', `projection ${name} has stopped`));
    },
    caughtUp: (position) => {
      signal.wake();
      return waiters.until(position);
    },
    status: () => ({ position: waiters.position(), failing: loop.failures > 0 }),
  };
};
