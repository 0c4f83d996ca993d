import { LEASE_OWNER } from '@antiphon/agents-features';
import {
  ApprovalDeadlines,
  ApprovalTimers,
  LocalRetries,
  ON_APPROVAL_CHANGE,
  SessionRecovery,
  Shutdown,
  TOOL_RETRIES,
  TURN_COMMANDS,
  ToolRetry,
  VendorFigures,
} from '@antiphon/conversation-features';
import { ChannelWork, DELIVERY_TIMERS, LocalDeliveries } from '@antiphon/channels-features';
import { expireReservations, rollBudgetPeriods } from '@antiphon/contracts/metering';
import * as platform from '@antiphon/service-host';
import { createToken, provide, provideClass } from '@antiphon/service-host';
import { openTemporal, readTemporalServer } from '@antiphon/temporal';
import { createArchiveOldEvents, readRetention } from './maintenance/archive-old-events.js';
import { createDeleteOldRows } from './maintenance/delete-old-rows.js';
import * as tokens from './orchestration.tokens.js';
import { reconcileRuns } from './runs/reconcile-runs.js';
import { RUN_STREAMS } from './runs/run-streams.js';
import { TaskRunner } from './runs/run-task.js';
import { RUN_STARTER } from './runs/start-run.handler.js';
import { createActivities } from './temporal/activities.js';
import type { Activities, ActivityDeps } from './temporal/activities.js';
import { RunWorker, TemporalRuns, WORKER_DEFAULTS } from './temporal/run-worker.js';
import { TemporalDeliveries } from './temporal/channel-deliveries-temporal.js';
import { TemporalRetries } from './temporal/tool-retry-temporal.js';

const { CLOCK, CONFIG, DATABASE_POOL, ENVIRONMENT } = platform;
const { LOGGER, NATS, REQUESTS } = platform;
const { TEMPORAL_QUEUE, TEMPORAL_RUNS, WORKER_SETTINGS } = tokens;

const ARCHIVE = createToken<ActivityDeps['archiveOldEvents']>('ARCHIVE');
const ACTIVITIES = createToken<Activities>('ACTIVITIES');
const APPROVAL_TIMERS = createToken<ApprovalTimers | null>('APPROVAL_TIMERS');
const RECONCILE = createToken<() => Promise<number>>('RECONCILE');
const SWEEPS = createToken<ActivityDeps['sweeps']>('SWEEPS');

/** Provides what Temporal runs: activities, sweeps, and the timers of approvals and tool retries. */
export const temporalProviders = [
  provide(WORKER_SETTINGS, [ENVIRONMENT, CONFIG, LEASE_OWNER], (env, config, identity) => ({
    ...WORKER_DEFAULTS,
    identity,
    server: readTemporalServer(env),
    retention: readRetention(env, config),
  })),
  provide(TEMPORAL_QUEUE, [WORKER_SETTINGS], ({ server, taskQueue }) =>
    server === undefined ? null : { server, taskQueue, temporal: openTemporal(server) },
  ),
  provide(APPROVAL_TIMERS, [TEMPORAL_QUEUE, DATABASE_POOL, LOGGER], (queue, pool, logger) =>
    queue ? new ApprovalTimers({ ...queue, pool, logger }) : null,
  ),
  // Without Temporal, the deadlines of approvals wait for it.
  provide(ON_APPROVAL_CHANGE, [APPROVAL_TIMERS], (timers) => (change) => timers?.update(change)),
  provide(
    TOOL_RETRIES,
    [TEMPORAL_QUEUE, ToolRetry, Shutdown, LOGGER],
    (queue, toolRetry, { stopping }, logger) =>
      queue
        ? new TemporalRetries({ ...queue, logger })
        : new LocalRetries(toolRetry, stopping.signal, logger),
  ),
  provide(
    DELIVERY_TIMERS,
    [TEMPORAL_QUEUE, DATABASE_POOL, ChannelWork, LOGGER],
    (queue, pool, work, logger) =>
      queue ? new TemporalDeliveries({ ...queue, pool, logger }) : new LocalDeliveries(work, logger),
  ),
  provide(
    RECONCILE,
    [APPROVAL_TIMERS, TEMPORAL_QUEUE, RUN_STREAMS, DATABASE_POOL, TURN_COMMANDS, DELIVERY_TIMERS, LOGGER],
    (timers, queue, runs, pool, turns, deliveries, logger) => async () => {
      if (!queue || !timers || !(deliveries instanceof TemporalDeliveries)) return 0;
      const open = (await timers.reconcile()) + (await deliveries.reconcile());
      return open + (await reconcileRuns({ ...queue, runs, pool, turns, logger }));
    },
  ),
  provide(
    SWEEPS,
    [RECONCILE, SessionRecovery, VendorFigures, REQUESTS, DATABASE_POOL, CLOCK, LOGGER, CONFIG],
    (reconcile, recovery, figures, requests, pool, clock, logger, config) => ({
      reconcileRuns: reconcile,
      sweepTurns: () => recovery.takeOverAbandoned(),
      learnVendorFigures: () => figures.sweep(),
      expireReservations: async () => (await requests.request(expireReservations, {})).ended,
      deleteOldRows: createDeleteOldRows({
        ...{ pool, clock, logger },
        claimDays: config.retention.idempotencyDays,
      }),
      rollBudgetPeriods: async () => (await requests.request(rollBudgetPeriods, {})).ended,
    }),
  ),
  provide(ARCHIVE, [DATABASE_POOL, CLOCK, LOGGER, WORKER_SETTINGS], (pool, clock, logger, { retention }) =>
    createArchiveOldEvents({ pool, clock, logger, retention }),
  ),
  provide(
    ACTIVITIES,
    [RUN_STREAMS, TaskRunner, ToolRetry, ApprovalDeadlines, SWEEPS, ARCHIVE, ChannelWork, LOGGER],
    (runs, tasks, retryTool, deadlines, sweeps, archiveOldEvents, channels, logger) =>
      createActivities({
        ...{ runs, tasks, retryTool, sweeps, archiveOldEvents, logger },
        tendApproval: (approval) => deadlines.apply(approval),
        advanceDelivery: (delivery, signal) => channels.advance(delivery, signal),
      }),
  ),
  provide(
    TEMPORAL_RUNS,
    [
      ...([TEMPORAL_QUEUE, TOOL_RETRIES, DELIVERY_TIMERS, WORKER_SETTINGS, ACTIVITIES] as const),
      ...([TaskRunner, RECONCILE, LOGGER] as const),
    ],
    (queue, retries, deliveries, settings, activities, tasks, reconcile, logger) =>
      queue && retries instanceof TemporalRetries && deliveries instanceof TemporalDeliveries
        ? new TemporalRuns({ queue, settings, activities, tasks, retries, deliveries, reconcile, logger })
        : null,
  ),
  provideClass(RunWorker, { temporal: TEMPORAL_RUNS, pool: DATABASE_POOL, nats: NATS, logger: LOGGER }),
  provide(RUN_STARTER, [RunWorker], (worker) => worker),
];
