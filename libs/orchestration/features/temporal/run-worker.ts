import { createRequire } from 'node:module';
import { tasksQueue } from '@antiphon/agent-workflows/tasks-queue';
import type { ApprovalRef, ApprovalTimer, SweepInput, SweepName } from '@antiphon/agent-workflows';
import { expireReservations, rollBudgetPeriods } from '@antiphon/contracts/metering';
import { createWorkStarts } from '@antiphon/database';
import { runProjection } from '@antiphon/event-store';
import type { RunningProjection } from '@antiphon/event-store';
import { createSerialQueue } from '@antiphon/kernel';
import { onLogNotification } from '@antiphon/messaging';
import type { NatsLink, RequestClient } from '@antiphon/messaging';
import { ensureSchedules, openTemporal, startWorker } from '@antiphon/temporal';
import type { RunningWorker, ScheduleSpec, TemporalLink, TemporalServer } from '@antiphon/temporal';
import { ApprovalTimers } from '@antiphon/conversation-features';
import type {
  ApprovalChange,
  ToolRetries,
  TurnCommands,
  TurnEndWatcher,
} from '@antiphon/conversation-features';
import { createArchiveOldEvents } from '../maintenance/archive-old-events.js';
import { createDeleteOldRows } from '../maintenance/delete-old-rows.js';
import type { Retention } from '../maintenance/archive-old-events.js';
import { agentRuns } from '../runs/agent-runs.projection.js';
import { reconcileRuns, startRunWorkflow } from '../runs/reconcile-runs.js';
import { TaskRunner } from '../runs/run-task.js';
import type { RunServices } from '../runs/run-streams.js';
import { TemporalRetries } from './tool-retry-temporal.js';
import { createActivities } from './activities.js';
import type { ToolRetryPort } from './activities.js';

/** Session operations of the same process that the worker's activities use. */
export interface WorkerRuntime extends TurnCommands {
  /** Takes over turns whose driver is gone. */
  takeOver(): Promise<void>;
  readonly approvals: {
    applyDeadlines(approval: ApprovalRef): Promise<ApprovalTimer>;
    subscribe(listener: (change: ApprovalChange) => void): void;
  };
  readonly retryTool: ToolRetryPort;
  /** Sets the scheduler of tool retries. */
  leaveRetriesTo(retries: ToolRetries): void;
}

export interface RunWorkerOptions {
  readonly services: RunServices;
  readonly nats: NatsLink;
  readonly requests: RequestClient;
  readonly runtime: WorkerRuntime;
  /** Closed by its creator. */
  readonly turnEnds: TurnEndWatcher;
  /** `host:port`. Without it, runs are accepted and wait. */
  /** Address of Temporal, with its TLS settings; undefined for none. */
  readonly temporalAddress: string | TemporalServer | undefined;
  /** Maximum numbers of concurrent activities. Default: 200 short ones and 1,000 tasks. */
  readonly capacity?: { readonly short: number; readonly tasks: number };
  readonly taskQueue?: string;
  /** Retention of old events. Without it, all events stay in the log. */
  readonly retention?: Retention | null;
  /** Name of this process in Temporal. */
  readonly identity: string;
  /** Interval of checks that Temporal has the schedules, ms. */
  readonly checkMs?: number;
}

const TASK_QUEUE = 'antiphon';
const CHECK_MS = 60_000;
/** Most tasks wait, for a model or for an approval. */
const CAPACITY = { short: 200, tasks: 1_000 };

const MINUTE_MS = 60_000;
const SCHEDULES: Readonly<Record<SweepName, Pick<ScheduleSpec, 'every'> & { readonly name: string }>> = {
  reconcileRuns: { name: 'reconcile-runs', every: MINUTE_MS },
  sweepTurns: { name: 'sweep-turns', every: MINUTE_MS },
  expireReservations: { name: 'expire-reservations', every: MINUTE_MS },
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

/**
 * Connects this process with Temporal: polls for activities, and starts and checks what they serve.
 */
class TemporalRuns {
  private readonly taskQueue: string;
  private readonly temporal: TemporalLink;
  private readonly activities: ReturnType<typeof createActivities>;
  private readonly tasks: TaskRunner;
  private readonly schedules: readonly ScheduleSpec[];
  private readonly approvalTimers: ApprovalTimers;
  private readonly toolRetries: TemporalRetries;
  private readonly checks = createSerialQueue();
  private workers: readonly RunningWorker[] = [];
  private timer: NodeJS.Timeout | undefined;

  constructor(
    private readonly options: RunWorkerOptions,
    private readonly server: string | TemporalServer,
  ) {
    const { runtime, services, taskQueue = TASK_QUEUE, retention = null } = options;
    this.taskQueue = taskQueue;
    this.temporal = openTemporal(server);
    const link = { temporal: this.temporal, taskQueue, logger: services.logger };
    this.approvalTimers = new ApprovalTimers({ ...link, pool: services.pool });
    runtime.approvals.subscribe((change) => this.approvalTimers.update(change));
    this.toolRetries = new TemporalRetries(link);
    runtime.leaveRetriesTo(this.toolRetries);
    this.schedules = sweepSchedules(taskQueue, { archives: retention !== null });
    const { turnEnds } = options;
    const starts = createWorkStarts(services.pool);
    this.tasks = new TaskRunner({ ...services, turns: runtime, turnEnds, starts });
    this.activities = this.createActivities(retention);
  }

  /**
   * Starts a run's Temporal workflow in the background. After a failure, the reconciler starts it.
   */
  startRun(workspace: string, runId: string, firstAgent: string): void {
    const { temporal, taskQueue } = this;
    startRunWorkflow({ temporal, taskQueue }, { workspace, runId }, firstAgent).catch((error: unknown) =>
      this.options.services.logger.warn({ err: error, runId }, 'run workflow start failed'),
    );
  }

  isPolling(): boolean {
    return this.workers.length > 0 && this.workers.every((worker) => worker.isPolling());
  }

  start(): void {
    this.workers = this.startWorkers();
    this.timer = setInterval(() => this.requestCheck(), this.options.checkMs ?? CHECK_MS);
  }

  async stop(): Promise<void> {
    clearInterval(this.timer);
    const pendingChecks = this.checks(() => Promise.resolve());
    const { logger } = this.options.services;
    await this.tasks
      .release()
      .catch((err: unknown) => logger.warn({ work: 'run-node', err }, 'work not released'));
    await Promise.all([
      ...this.workers.map((worker) => worker.stop()),
      pendingChecks,
      this.toolRetries.stop(),
    ]);
    await this.temporal.close();
  }

  /**
   * Starts two workers. Tasks that wait for a day must not use the capacity of short activities:
   * approvals, tool retries and sweeps.
   */
  private startWorkers(): RunningWorker[] {
    const { services, identity, capacity = CAPACITY } = this.options;
    const { server, activities, taskQueue } = this;
    const common = { server, namespace: this.temporal.namespace, logger: services.logger, identity };
    const short = { ...common, taskQueue, maxActivities: capacity.short };
    const tasks = { ...common, taskQueue: tasksQueue(taskQueue), maxActivities: capacity.tasks };
    const { runTask } = activities;
    const onPolling = (): void => this.requestCheck();
    return [
      // It takes tasks too, for runs that an older version started.
      startWorker({ ...short, bundlePath: bundlePath(), activities: { ...activities }, onPolling }),
      startWorker({ ...tasks, activities: { runTask } }),
    ];
  }

  private createActivities(retention: Retention | null): ReturnType<typeof createActivities> {
    const { services, runtime, requests } = this.options;
    return createActivities({
      ...services,
      tasks: this.tasks,
      retryTool: runtime.retryTool,
      tendApproval: (approval) => runtime.approvals.applyDeadlines(approval),
      archiveOldEvents: createArchiveOldEvents({ ...services, retention }),
      sweeps: {
        reconcileRuns: () => this.reconcile(),
        sweepTurns: () => runtime.takeOver(),
        expireReservations: async () => (await requests.request(expireReservations, {})).ended,
        deleteOldRows: createDeleteOldRows({
          ...services,
          claimDays: services.config.retention.idempotencyDays,
        }),
        rollBudgetPeriods: async () => (await requests.request(rollBudgetPeriods, {})).ended,
      },
    });
  }

  private async reconcile(): Promise<number> {
    const { services, runtime } = this.options;
    const { temporal, taskQueue } = this;
    const approvals = await this.approvalTimers.reconcile();
    return approvals + (await reconcileRuns({ ...services, temporal, taskQueue, turns: runtime }));
  }

  private requestCheck(): void {
    void this.checks(() => this.checkSchedules());
  }

  /**
   * Creates missing schedules. A server that lost them lost its workflows too: reconciles at once.
   */
  private async checkSchedules(): Promise<void> {
    const { logger } = this.options.services;
    try {
      const created = await ensureSchedules(this.temporal, [...this.schedules]);
      if (created > 0)
        logger.info({ schedules: created, open: await this.reconcile() }, 'Temporal schedules created');
    } catch (error) {
      logger.warn({ err: error }, 'Temporal schedule check failed');
    }
  }
}

/** Runs workflow runs in this process: their Temporal workers, schedules and list projection. */
export class RunWorker {
  private readonly temporal: TemporalRuns | null;
  private projection: RunningProjection | null = null;
  private stopping: Promise<void> | null = null;

  constructor(private readonly options: RunWorkerOptions) {
    const { temporalAddress } = options;
    this.temporal = temporalAddress === undefined ? null : new TemporalRuns(options, temporalAddress);
  }

  /** Starts an accepted run, or joins it. Does not wait for Temporal. */
  startRun(workspace: string, runId: string, firstAgent: string): void {
    this.temporal?.startRun(workspace, runId, firstAgent);
  }

  /** Returns true while all workers poll Temporal. */
  isPolling(): boolean {
    return this.temporal?.isPolling() ?? false;
  }

  /** Starts the projection at once, and the Temporal workers after `ready`. */
  start(ready: Promise<void> = Promise.resolve()): void {
    const { services, nats } = this.options;
    const { pool, logger } = services;
    const subscribe = (wake: () => void, categories: readonly string[]) =>
      onLogNotification(nats, wake, { categories });
    this.projection = runProjection({ ...agentRuns, pool, logger, subscribe });
    void ready.then(() => this.stopping ?? this.temporal?.start());
  }

  /** Stops polling. Another process retries the running activities. Safe to call twice. */
  stop(): Promise<void> {
    return (this.stopping ??= this.stopAll());
  }

  private async stopAll(): Promise<void> {
    await this.temporal?.stop();
    await this.projection?.stop();
  }
}
