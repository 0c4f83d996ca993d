import { tasksQueue } from '@antiphon/agent-workflows/tasks-queue';
import { createRequire } from 'node:module';
import type pg from 'pg';
import { runProjection } from '@antiphon/event-store';
import type { RunningProjection } from '@antiphon/event-store';
import { expireReservations, rollBudgetPeriods } from '@antiphon/contracts/metering';
import type { getRun, getWorkflow } from '@antiphon/contracts/agent';
import type { RunView, WorkflowView } from '@antiphon/contracts/agent';
import type { z } from 'zod';
import { onLogNotification } from '@antiphon/messaging';
import type { NatsLink, RequestClient } from '@antiphon/messaging';
import { ensureSchedules, openTemporal, startWorker } from '@antiphon/temporal';
import type { RunningWorker, TemporalLink } from '@antiphon/temporal';
import type { AgentRuntime } from '../agent-runtime.js';
import { createArchiveOldEvents } from '../maintenance/archive-old-events.js';
import type { Retention } from '../maintenance/retention.js';
import { createCancelRun } from './cancel-run.handler.js';
import type { CancelRun } from './cancel-run.handler.js';
import { createActivities } from './activities.js';
import { createRunTask } from './run-task.js';
import type { TurnEndings } from './turn-ends.js';
import { createWorkflowServices } from './workflow-services.js';
import type { WorkflowHouse, WorkflowServices } from './workflow-services.js';
import { agentRuns } from '../projections.js';
import { createLists } from './run-queries.handler.js';
import { runView } from './run-view.js';
import { workflowView } from './workflow-view.js';
import { beginRun, createReconcileRuns } from './reconcile-runs.js';
import { createApprovalWaits } from '../approvals/approval-timers.js';
import { sweepSchedules } from './schedules.js';
import { createTemporalRetries } from '../turns/tool-retry-temporal.js';
import { createManageWorkflows } from './workflows.handler.js';
import type { ManageWorkflows } from './workflows.handler.js';
import { createStartRun } from './start-run.handler.js';
import type { StartRun } from './start-run.handler.js';

export const RUNS_ENGINE = Symbol('RUNS_ENGINE');

export interface RunsEngineOptions extends WorkflowHouse {
  readonly pool: pg.Pool;
  readonly nats: NatsLink;
  readonly requests: RequestClient;
  readonly runtime: Pick<
    AgentRuntime,
    'submitTurn' | 'cancelTurn' | 'takeOver' | 'approvals' | 'retryTool' | 'leaveRetriesTo'
  >;
  readonly endings: TurnEndings;
  /** `host:port`; without it runs are accepted, and wait. */
  readonly temporalAddress: string | undefined;
  /** Default: 200 that take a moment, and 1,000 tasks. */
  readonly places?: { readonly moments: number; readonly tasks: number };
  readonly taskQueue?: string;
  /** Which old events leave, and where to; without it all stay. */
  readonly retention?: Retention | null;
  /** As Temporal shows this worker. */
  readonly identity: string;
  /** How often this process looks whether Temporal still has its schedules, in ms. */
  readonly checkMs?: number;
}

type Lists = ReturnType<typeof createLists>;

/** Workflows and runs: their use cases, and the life of what carries runs out in this process. */
export interface RunsEngine extends Lists {
  readonly workflows: ManageWorkflows;
  readonly startRun: StartRun;
  readonly cancelRun: CancelRun;
  getWorkflow(request: z.output<typeof getWorkflow.request>): Promise<WorkflowView>;
  getRun(request: z.output<typeof getRun.request>): Promise<RunView>;
  /** Whether this process takes work from Temporal now. */
  polling(): boolean;
  /** Takes work from Temporal once `first` is over. */
  start(first?: Promise<void>): void;
  /** Takes no more work from Temporal; what is at work is tried again by whoever polls next. Safe to call twice. */
  stop(): Promise<void>;
}

const TASK_QUEUE = 'antiphon';
const CHECK_MS = 60_000;
/** Activities at once in one process: those that take a moment, and tasks, most of which wait, for a model or for somebody's word. */
const PLACES = { moments: 200, tasks: 1_000 };

/** What a process does with Temporal, if there is one. */
interface Engine {
  readonly begin: (workspace: string, runId: string, firstAgent: string) => void;
  polling(): boolean;
  start(): void;
  stop(): Promise<void>;
}

const noEngine: Engine = {
  begin: () => undefined,
  polling: () => false,
  start: () => undefined,
  stop: () => Promise.resolve(),
};

const bundlePath = (): string => createRequire(import.meta.url).resolve('@antiphon/agent-workflows/bundle');

const sweepsOf = ({ runtime, requests }: RunsEngineOptions) => ({
  sweepTurns: () => runtime.takeOver(),
  expireReservations: async () => (await requests.request(expireReservations, {})).ended,
  rollBudgetPeriods: async () => (await requests.request(rollBudgetPeriods, {})).ended,
});

interface Work {
  readonly address: string;
  readonly temporal: TemporalLink;
  readonly taskQueue: string;
  readonly activities: ReturnType<typeof createActivities>;
  readonly onPolling: () => void;
}

/** Two of them: tasks that wait for a day must not take the places of what answers approvals, tries tools again, and sweeps. */
const runWorkers = (
  { logger, identity, places = PLACES }: RunsEngineOptions,
  { address, temporal, taskQueue, activities, onPolling }: Work,
): RunningWorker[] => {
  const common = { address, namespace: temporal.namespace, logger, identity };
  const moments = { ...common, taskQueue, maxActivities: places.moments };
  const tasks = { ...common, taskQueue: tasksQueue(taskQueue), maxActivities: places.tasks };
  const { runTask } = activities;
  return [
    // It takes tasks too: those of runs that an older version began.
    startWorker({ ...moments, bundlePath: bundlePath(), activities: { ...activities }, onPolling }),
    startWorker({ ...tasks, activities: { runTask } }),
  ];
};

const beginner =
  (temporal: TemporalLink, taskQueue: string, logger: WorkflowHouse['logger']): Engine['begin'] =>
  (workspace, runId, firstAgent) => {
    beginRun({ temporal, taskQueue }, { workspace, runId }, firstAgent).catch((error: unknown) =>
      logger.warn({ err: error, runId }, 'Temporal was not told of a run; the reconciler will tell it'),
    );
  };

const createEngine = (options: RunsEngineOptions, services: WorkflowServices, address: string): Engine => {
  const { runtime, logger, endings, pool, taskQueue = TASK_QUEUE, retention = null } = options;
  const { submitTurn, cancelTurn } = runtime;
  const temporal: TemporalLink = openTemporal(address);
  const reconcileRuns = createReconcileRuns({ services, pool, temporal, taskQueue, cancelTurn });
  const waits = createApprovalWaits({ temporal, taskQueue, pool, logger });
  runtime.approvals.follow(waits.note);
  const reconcile = async (): Promise<number> => (await waits.reconcile()) + (await reconcileRuns());
  const archiveOldEvents = createArchiveOldEvents({ ...services, retention });
  const activities = createActivities({
    services,
    runTask: createRunTask({ ...services, submitTurn, cancelTurn, endings }),
    ...{ retryTool: runtime.retryTool, tendApproval: runtime.approvals.tend, archiveOldEvents },
    sweeps: { ...sweepsOf(options), reconcileRuns: reconcile },
  });

  const schedules = sweepSchedules(taskQueue, { archives: retention !== null });
  /** A server that was emptied has lost its schedules: then what waits there is begun again at once. */
  const check = async (): Promise<void> => {
    try {
      const made = await ensureSchedules(temporal, schedules);
      if (made > 0)
        logger.info({ schedules: made, open: await reconcile() }, 'Temporal was given its schedules');
    } catch (error) {
      logger.warn({ err: error }, 'Temporal could not be checked; it will be again');
    }
  };

  let workers: RunningWorker[] = [];
  let timer: NodeJS.Timeout | undefined;
  const worked: { check: Promise<void> } = { check: Promise.resolve() };
  const checkNow = (): void => void (worked.check = worked.check.then(check));
  const start = (): void => {
    workers = runWorkers(options, { address, temporal, taskQueue, activities, onPolling: checkNow });
    timer = setInterval(checkNow, options.checkMs ?? CHECK_MS);
  };
  const retries = createTemporalRetries({ temporal, taskQueue, logger });
  runtime.leaveRetriesTo(retries);
  const stop = async (): Promise<void> => {
    clearInterval(timer);
    await Promise.all([...workers.map((worker) => worker.stop()), worked.check, retries.stop()]);
    await temporal.close();
  };
  const polling = () => workers.length > 0 && workers.every((worker) => worker.isPolling());
  return { begin: beginner(temporal, taskQueue, logger), polling, start, stop };
};

const project = ({ pool, nats, logger }: RunsEngineOptions): RunningProjection =>
  runProjection({
    ...agentRuns,
    pool,
    logger,
    subscribe: (wake) => onLogNotification(nats, wake),
  });

/** @param options.endings closed by whoever made it */
export const createRunsEngine = (options: RunsEngineOptions): RunsEngine => {
  const services = createWorkflowServices(options);
  const { temporalAddress, runtime, pool } = options;
  const engine = temporalAddress === undefined ? noEngine : createEngine(options, services, temporalAddress);
  let projection: RunningProjection | null = null;
  let stopped: Promise<void> | null = null;
  const stop = async (): Promise<void> => {
    await engine.stop();
    await projection?.stop();
  };
  return {
    ...createLists(pool),
    workflows: createManageWorkflows(services),
    startRun: createStartRun(services, engine.begin),
    cancelRun: createCancelRun(services, runtime.cancelTurn),
    getWorkflow: async ({ workspace, workflowId }) =>
      workflowView((await services.workflows.read(workspace, workflowId)).state),
    getRun: async ({ workspace, runId }) => runView((await services.runs.read(workspace, runId)).state),
    polling: engine.polling,
    start: (first = Promise.resolve()) => {
      projection = project(options);
      void first.then(() => stopped ?? engine.start());
    },
    stop: () => (stopped ??= stop()),
  };
};
