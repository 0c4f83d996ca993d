import { createRequire } from 'node:module';
import type pg from 'pg';
import { tasksQueue } from '@antiphon/agent-workflows/tasks-queue';
import type { SweepInput, SweepName } from '@antiphon/agent-workflows';
import { runProjection } from '@antiphon/event-store';
import type { RunningProjection } from '@antiphon/event-store';
import { createSerialQueue } from '@antiphon/kernel';
import { onLogNotification } from '@antiphon/messaging';
import type { NatsLink } from '@antiphon/messaging';
import type { Logger } from '@antiphon/observability';
import { ensureSchedules, startWorker } from '@antiphon/temporal';
import type { RunningWorker, ScheduleSpec, TemporalLink, TemporalServer } from '@antiphon/temporal';
import type { Retention } from '../maintenance/archive-old-events.js';
import { agentRuns } from '../runs/agent-runs.projection.js';
import { startRunWorkflow } from '../runs/reconcile-runs.js';
import type { TaskRunner } from '../runs/run-task.js';
import type { Activities } from './activities.js';
import type { TemporalDeliveries } from './channel-deliveries-temporal.js';
import type { TemporalRetries } from './tool-retry-temporal.js';

/** Connection with Temporal, and the queue of the activities of this service. */
export interface TemporalQueue {
  readonly server: string | TemporalServer;
  readonly temporal: TemporalLink;
  readonly taskQueue: string;
}

export interface WorkerSettings {
  /** Address of Temporal, with its TLS settings. Undefined for none: runs are accepted and wait. */
  readonly server: string | TemporalServer | undefined;
  readonly taskQueue: string;
  /** Maximum numbers of concurrent activities. */
  readonly capacity: { readonly short: number; readonly tasks: number };
  /** Retention of old events. Null: all events stay in the log. */
  readonly retention: Retention | null;
  /** Name of this process in Temporal. */
  readonly identity: string;
  /** Interval of checks that Temporal has the schedules, ms. */
  readonly checkMs: number;
}

export const WORKER_DEFAULTS = {
  taskQueue: 'antiphon',
  checkMs: 60_000,
  // Most tasks wait, for a model or for an approval.
  capacity: { short: 200, tasks: 1_000 },
} as const;

const MINUTE_MS = 60_000;
const SCHEDULES: Readonly<Record<SweepName, Pick<ScheduleSpec, 'every'> & { readonly name: string }>> = {
  reconcileRuns: { name: 'reconcile-runs', every: MINUTE_MS },
  sweepTurns: { name: 'sweep-turns', every: MINUTE_MS },
  expireReservations: { name: 'expire-reservations', every: MINUTE_MS },
  learnVendorFigures: { name: 'learn-vendor-figures', every: MINUTE_MS },
  // After midnight UTC, when the ended day takes no new reservations.
  rollBudgetPeriods: { name: 'roll-budget-periods', every: { hour: 0, minute: 1 } },
  deleteOldRows: { name: 'delete-old-rows', every: 60 * MINUTE_MS },
  // Events expire at midnight. Hourly firings also serve machines that run for a part of the day.
  archiveOldEvents: { name: 'archive-old-events', every: 60 * MINUTE_MS },
};

/** Returns the schedules. Their ids are fixed, so that only the first process creates each. */
export const sweepSchedules = (
  taskQueue: string,
  { archives }: { readonly archives: boolean },
): ScheduleSpec[] =>
  (Object.keys(SCHEDULES) as SweepName[])
    .filter((what) => archives || what !== 'archiveOldEvents')
    .map((what) => ({
      scheduleId: `${taskQueue}/${SCHEDULES[what].name}`,
      workflowType: 'sweep',
      taskQueue,
      input: { what } satisfies SweepInput,
      every: SCHEDULES[what].every,
    }));

const bundlePath = (): string => createRequire(import.meta.url).resolve('@antiphon/agent-workflows/bundle');

export interface TemporalRunsDeps {
  readonly queue: TemporalQueue;
  readonly settings: WorkerSettings;
  readonly activities: Activities;
  readonly tasks: TaskRunner;
  readonly retries: TemporalRetries;
  readonly deliveries: TemporalDeliveries;
  /** Compares Temporal with the log. Returns the number of open approvals and runs. */
  readonly reconcile: () => Promise<number>;
  readonly logger: Logger;
}

/**
 * Connects this process with Temporal: polls for activities, and starts and checks what they serve.
 */
export class TemporalRuns {
  private readonly schedules: readonly ScheduleSpec[];
  private readonly checks = createSerialQueue();
  private workers: readonly RunningWorker[] = [];
  private timer: NodeJS.Timeout | undefined;
  private isStopped = false;

  constructor(private readonly deps: TemporalRunsDeps) {
    const { queue, settings } = deps;
    this.schedules = sweepSchedules(queue.taskQueue, { archives: settings.retention !== null });
  }

  /**
   * Starts a run's Temporal workflow in the background. After a failure, the reconciler starts it.
   */
  startRun(workspace: string, runId: string, firstAgent: string): void {
    const { queue, logger } = this.deps;
    startRunWorkflow(queue, { workspace, runId }, firstAgent).catch((error: unknown) =>
      logger.warn({ err: error, runId }, 'run workflow start failed'),
    );
  }

  isPolling(): boolean {
    return this.workers.length > 0 && this.workers.every((worker) => worker.isPolling());
  }

  start(): void {
    this.workers = this.startWorkers();
    this.timer = setInterval(() => this.requestCheck(), this.deps.settings.checkMs);
  }

  async stop(): Promise<void> {
    this.isStopped = true;
    clearInterval(this.timer);
    const pendingChecks = this.checks(() => Promise.resolve());
    const { tasks, retries, deliveries, queue, logger } = this.deps;
    await tasks
      .release()
      .catch((err: unknown) => logger.warn({ work: 'run-node', err }, 'work not released'));
    await Promise.all([
      ...this.workers.map((worker) => worker.stop()),
      pendingChecks,
      retries.stop(),
      deliveries.stop(),
    ]);
    await queue.temporal.close();
  }

  /**
   * Starts two workers. Tasks that wait for a day must not use the capacity of short activities:
   * approvals, tool retries and sweeps.
   */
  private startWorkers(): RunningWorker[] {
    const { queue, settings, activities, logger } = this.deps;
    const { server, temporal, taskQueue } = queue;
    const { identity, capacity } = settings;
    const common = { server, namespace: temporal.namespace, logger, identity };
    const short = { ...common, taskQueue, maxActivities: capacity.short };
    const tasks = { ...common, taskQueue: tasksQueue(taskQueue), maxActivities: capacity.tasks };
    const { runTask, advanceDelivery } = activities;
    const onPolling = (): void => this.requestCheck();
    return [
      // It takes tasks too, for runs that an older version started.
      startWorker({ ...short, bundlePath: bundlePath(), activities: { ...activities }, onPolling }),
      startWorker({ ...tasks, activities: { runTask, advanceDelivery } }),
    ];
  }

  /** After a stop no check may begin: its link to Temporal is closed. */
  private requestCheck(): void {
    if (!this.isStopped) void this.checks(() => this.checkSchedules());
  }

  /**
   * Creates missing schedules. A server that lost them lost its workflows too: reconciles at once.
   */
  private async checkSchedules(): Promise<void> {
    const { queue, reconcile, logger } = this.deps;
    try {
      const created = await ensureSchedules(queue.temporal, [...this.schedules]);
      if (created > 0)
        logger.info({ schedules: created, open: await reconcile() }, 'Temporal schedules created');
    } catch (error) {
      logger.warn({ err: error }, 'Temporal schedule check failed');
    }
  }
}

export interface RunWorkerDeps {
  /** Null without Temporal. */
  readonly temporal: TemporalRuns | null;
  readonly pool: pg.Pool;
  readonly nats: NatsLink;
  readonly logger: Logger;
}

/** Runs workflow runs in this process: their Temporal workers, schedules and list projection. */
export class RunWorker {
  private projection: RunningProjection | null = null;
  private stopping: Promise<void> | null = null;

  constructor(private readonly deps: RunWorkerDeps) {}

  /** Starts an accepted run, or joins it. Does not wait for Temporal. */
  startRun(workspace: string, runId: string, firstAgent: string): void {
    this.deps.temporal?.startRun(workspace, runId, firstAgent);
  }

  /** Returns true while all workers poll Temporal. */
  isPolling(): boolean {
    return this.deps.temporal?.isPolling() ?? false;
  }

  /** Starts the projection at once, and the Temporal workers after `ready`. */
  start(ready: Promise<void> = Promise.resolve()): void {
    const { temporal, pool, nats, logger } = this.deps;
    const subscribe = (wake: () => void, categories: readonly string[]) =>
      onLogNotification(nats, wake, { categories });
    this.projection = runProjection({ ...agentRuns, pool, logger, subscribe });
    void ready.then(() => this.stopping ?? temporal?.start());
  }

  /** Stops polling. Another process retries the running activities. Safe to call twice. */
  stop(): Promise<void> {
    return (this.stopping ??= this.stopAll());
  }

  private async stopAll(): Promise<void> {
    await this.deps.temporal?.stop();
    await this.projection?.stop();
  }
}
