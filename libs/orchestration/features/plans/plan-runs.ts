import type pg from 'pg';
import { causeOf } from '@antiphon/contracts/causes';
import type { Cause } from '@antiphon/contracts/causes';
import { WorkTrials, createWorkStarts } from '@antiphon/database';
import { createLogMarks } from '@antiphon/event-store';
import type { LogMarks } from '@antiphon/event-store';
import { isAppError } from '@antiphon/kernel';
import type { LeaderLoop } from '@antiphon/messaging';
import type { Logger } from '@antiphon/observability';
import { OpenPlanRuns, PlanRunFailures, readPlanRunFacts } from './open-plan-runs.js';
import type { OpenPlanRun } from './open-plan-runs.js';
import type { PlanRunDriver } from './plan-run-driver.js';

export interface PlanRunsDeps {
  readonly loop: LeaderLoop;
  readonly driver: PlanRunDriver;
  readonly pool: pg.Pool;
  readonly logger: Logger;
}

/** Times of the runs of plans, ms. */
export interface PlanTimes {
  readonly leaseMs: number;
  readonly pollMs: number;
}

export const defaultPlanTimes: PlanTimes = { leaseMs: 4_000, pollMs: 500 };

/** Lease of the process that drives the runs of plans. */
export const PLANS_LEASE = 'agent/plans';

/** Kind of the counted starts of runs. */
const PLAN_RUN = 'plan-run';
const TERM_ENDED = 'this process no longer drives plans';

/**
 * Does the runs of plans: one turn for each step, in a session for each run. One process does so at
 * a time. All that it knows is in the log, so that another process continues where it stopped.
 */
export class PlanRuns {
  /** Open runs that this process works on. */
  private readonly running = new Map<string, Promise<void>>();
  private term = new AbortController();
  private readonly marks: LogMarks;
  private open: OpenPlanRuns;
  private readonly failures = new PlanRunFailures(() => performance.now());
  private readonly trials: WorkTrials;

  constructor(private readonly deps: PlanRunsDeps) {
    this.marks = createLogMarks(deps.pool, ['plan']);
    this.trials = new WorkTrials(createWorkStarts(deps.pool));
    this.open = this.createOpenRuns();
  }

  private createOpenRuns(): OpenPlanRuns {
    const { pool } = this.deps;
    // A round that was woken looks for what was committed just before.
    return new OpenPlanRuns(
      (after) => readPlanRunFacts(pool, after),
      () => this.marks.readMark(0),
    );
  }

  /** Starts the next round soon. */
  wake(): void {
    this.deps.loop.wake();
  }

  /** Drives runs until the signal aborts, then releases the lease. */
  run(signal: AbortSignal): Promise<void> {
    return this.deps.loop.run(signal, {
      round: () => this.round(),
      endTerm: () => this.endTerm(),
      stop: () => this.stop(),
    });
  }

  private endTerm(): void {
    this.term.abort(new Error(TERM_ENDED));
    this.term = new AbortController();
    this.open = this.createOpenRuns();
  }

  private async stop(): Promise<void> {
    const { logger } = this.deps;
    await this.trials
      .release()
      .catch((err: unknown) => logger.warn({ work: 'plan-run', err }, 'work not released'));
    this.term.abort(new Error(TERM_ENDED));
    await Promise.allSettled(this.running.values());
    await this.marks.close();
  }

  private async round(): Promise<void> {
    const { loop, driver } = this.deps;
    for (const run of await this.open.find()) {
      const { runId } = run;
      if (this.running.has(runId) || this.failures.isWaiting(runId)) continue;
      const { signal } = this.term;
      const term = {
        ...{ signal, isLeader: () => loop.isLeader() },
        onProgress: () => this.failures.clear(runId),
      };
      const done = this.trials
        .run(PLAN_RUN, runId, (survive) => driver.drive(run, runId, { ...term, survive }))
        .catch((error: unknown) => this.handleFailure(run, error))
        .catch((error: unknown) => loop.warnOnce(error))
        .finally(() => this.running.delete(runId));
      this.running.set(runId, done);
    }
  }

  /** Drives a run again later. Ends it if a retry would fail again. */
  private async handleFailure({ workspace, path, runId }: OpenPlanRun, error: unknown): Promise<void> {
    if (this.term.signal.aborted) return;
    const { loop, driver, logger } = this.deps;
    if (!this.failures.add(runId, error)) {
      logger.warn({ err: error, runId }, 'plan run interrupted');
      return;
    }
    logger.error({ err: error, runId }, 'plan run failed');
    const cause: Cause = isAppError(error)
      ? { kind: 'failed_with', code: error.code, why: causeOf(error) }
      : { kind: 'internal_error' };
    // This process lost the lease during the step. The new leader decides about the run.
    if (loop.isLeader()) await driver.giveUp({ workspace, path }, runId, cause);
  }
}
