import type pg from 'pg';
import { createPipelinedPool } from '@antiphon/database';
import { createWakeSignal, isAppError, transient, type WakeSignal } from '@antiphon/kernel';
import { observeGauges } from '@antiphon/observability';
import type { Logger } from '@antiphon/observability';
import { createLogReader } from '../read/log-reader.js';
import { type BatchResult, runBatch } from './projection-batch.js';
import { ensureCheckpoint, PROJECTION_PRELUDE } from './projection-checkpoint.js';
import { type Look, look, type Passed } from './projection-snapshot.js';
import { createRetries, type Retries } from './projection-retries.js';
import { createWaiters } from './position-waiters.js';
import type { HandleEvents, ProjectionSource } from './projection-source.js';

export interface ProjectionOptions {
  readonly pool: pg.Pool;
  /** Names the checkpoint; a new name reads the log from its beginning. */
  readonly name: string;
  readonly categories: readonly string[];
  /** Applies events, in order of position and each once, in the transaction that moves the checkpoint. */
  readonly handle: HandleEvents;
  readonly logger: Logger;
  /** Subscribes to what tells that the log has grown, e.g. `hint.log`; answers how to unsubscribe. */
  readonly subscribe?: (wake: () => void) => () => void;
  /** How often to look without a hint, in ms. */
  readonly pollMs?: number;
  readonly batchSize?: number;
  /** Waits before each further try of an event that cannot be handled, in ms. After the last, its stream is parked. */
  readonly retryDelaysMs?: readonly number[];
}

export interface RunningProjection {
  /** Ends after the transaction that is under way; those who wait for a position are refused. */
  stop(): Promise<void>;
  /** Resolves once every event up to this position is applied or parked, by this process or another. */
  waitForPosition(position: number): Promise<void>;
  /** The last position known to be applied, and whether the last look at the log failed. */
  status(): { readonly position: number; readonly failing: boolean };
}

const MAX_BACKOFF_MS = 5_000;
/** How soon to look again while somebody waits for what another process applies, or another process was faster. */
const SOON_MS = 50;
/** How far the checkpoint may be behind a log that has nothing for the projection: a transaction for each look is dear. */
const PASS_WITHIN_MS = 1_000;

interface Loop {
  /** Its pool is the runner's own. */
  readonly source: ProjectionSource;
  /** For what is rare, and waits for the disk. */
  readonly pool: pg.Pool;
  readonly logger: Logger;
  readonly pollMs: number;
  readonly signal: WakeSignal;
  readonly waiters: ReturnType<typeof createWaiters>;
  readonly retries: Retries;
  readonly stopping: () => boolean;
  failures: number;
  /** Another process was faster the last time. */
  contended: boolean;
  passed: Passed;
  movedAt: number;
}

const report = (loop: Loop, { parked }: BatchResult): void => {
  for (const { event, error } of parked) {
    const { workspace, streamId, position, eventId, type } = event;
    loop.logger.warn(
      { err: error, projection: loop.source.name, workspace, streamId, position, eventId, type },
      'an event could not be projected; its stream waits for the next try, the others go on',
    );
  }
  if (parked.length > 0) loop.retries.expect();
};

/** Nothing for this projection: known to who waits at once, to the checkpoint once in a while. */
const isPassed = (loop: Loop, { events, position, upTo }: Look): boolean => {
  if (events.length > 0) return false;
  loop.passed = { from: position, to: upTo };
  loop.waiters.reached(upTo);
  return performance.now() - loop.movedAt < PASS_WITHIN_MS;
};

/** Applies what is there, to the log's end; `elsewhere`: another process was at it. */
const catchUp = async (loop: Loop): Promise<'done' | 'elsewhere'> => {
  const { source, waiters, stopping } = loop;
  for (;;) {
    const seen = await look(source, loop.passed);
    waiters.reached(seen.position);
    if (seen.parked) loop.retries.expect();
    if (seen.upTo <= seen.position || stopping()) return 'done';
    if (isPassed(loop, seen)) {
      if (seen.upTo < seen.head) continue;
      return 'done';
    }
    const result = await runBatch(source, seen, loop.contended);
    loop.contended = result.state === 'elsewhere';
    if (loop.contended) return 'elsewhere';
    loop.movedAt = performance.now();
    loop.passed = { from: result.position, to: result.position };
    waiters.reached(result.position);
    report(loop, result);
    // What is appended from here on brings a hint of its own.
    if (result.state === 'caught_up') return 'done';
  }
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

const restFor = ({ passed, waiters, pollMs }: Loop, ended: 'done' | 'elsewhere'): number => {
  if (ended === 'elsewhere' || waiters.waiting()) return Math.min(pollMs, SOON_MS);
  return passed.to > passed.from ? Math.min(pollMs, PASS_WITHIN_MS) : pollMs;
};

const run = async (loop: Loop): Promise<void> => {
  let prepared = false;
  while (!loop.stopping()) {
    let delay: number;
    try {
      if (!prepared) {
        await ensureCheckpoint(loop.pool, loop.source.name);
        await loop.retries.all();
        prepared = true;
      }
      const ended = await catchUp(loop);
      loop.failures = 0;
      delay = Math.min(restFor(loop, ended), await loop.retries.due());
    } catch (error) {
      delay = nextDelay(loop, error);
    }
    if (!loop.stopping()) await loop.signal.wait(delay);
  }
};

const beginLoop = (options: ProjectionOptions, own: pg.Pool, stopping: () => boolean): Loop => {
  const { pool, name, categories, handle, logger, pollMs = 1_000, batchSize = 500, retryDelaysMs } = options;
  const source = { pool: own, name, categories, handle, batchSize, retryDelaysMs };
  return {
    source,
    pool,
    logger,
    pollMs,
    signal: createWakeSignal(),
    waiters: createWaiters(),
    retries: createRetries({ ...source, pool }, logger),
    stopping,
    failures: 0,
    contended: false,
    passed: { from: 0, to: 0 },
    movedAt: -Infinity,
  };
};

const PARKED_SQL = 'select count(*)::integer as parked from projection_parked where projection = $1';

/** How far it is behind the log, and what it has stopped at, counted when somebody asks. */
const observeLag = ({ pool, name }: ProjectionOptions, position: () => number): (() => void) =>
  observeGauges(
    {
      antiphon_projection_lag_events: 'Events of the log that a projection has not seen yet',
      antiphon_projection_parked_streams: 'Event streams that a projection has stopped at',
    },
    async (report) => {
      const seen = position();
      const behind = Math.max(0, (await createLogReader(pool).headPosition()) - seen);
      report('antiphon_projection_lag_events', behind, { projection: name });
      const { rows } = await pool.query<{ parked: number }>(PARKED_SQL, [name]);
      report('antiphon_projection_parked_streams', rows[0]?.parked ?? 0, { projection: name });
    },
  );

/**
 * Keeps the rows of one projection equal to the log: live by hint, by polling where a hint is lost. Several
 * processes may run the same one; each transaction is one process's, so every event is applied once.
 */
export const runProjection = (options: ProjectionOptions): RunningProjection => {
  let stopped = false;
  const own = createPipelinedPool(options.pool, { prelude: PROJECTION_PRELUDE, logger: options.logger });
  // A pool that is ended under a projection that nobody stopped ends it too: its own connection must not outlive that.
  const loop = beginLoop(options, own, () => stopped || options.pool.ending);
  const { signal, waiters } = loop;
  const unsubscribe = options.subscribe?.(signal.wake);
  const running = run(loop).finally(() => own.end());
  const unobserve = observeLag(options, waiters.position);
  return {
    stop: async () => {
      stopped = true;
      unobserve();
      unsubscribe?.();
      signal.wake();
      await running;
      waiters.refuse(transient('LOG.PROJECTION_STOPPED', `projection ${options.name} has stopped`));
    },
    waitForPosition: (position) => {
      signal.wake();
      return waiters.until(position);
    },
    status: () => ({ position: waiters.position(), failing: loop.failures > 0 }),
  };
};
