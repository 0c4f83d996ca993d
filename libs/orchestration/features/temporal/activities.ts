import { ApplicationFailure } from '@temporalio/common';
import { Context } from '@temporalio/activity';
import type {
  ApprovalActivities,
  ChannelActivities,
  ChannelDeliveryProgress,
  ChannelDeliveryRef,
  RunActivities,
  SweepActivities,
  ToolActivities,
} from '@antiphon/agent-workflows';
import { isAppError, notFound, toAppError } from '@antiphon/kernel';
import type { AppError } from '@antiphon/kernel';
import type { Logger } from '@antiphon/observability';
import { contextFrom, runWithContext } from '@antiphon/observability';
import { isPermanentError, progressOf } from '../runs/run-task.js';
import type { TaskRunner } from '../runs/run-task.js';
import type { RunStreams } from '../runs/run-streams.js';

const HEARTBEAT_MS = 1_000;

/**
 * Converts an error for Temporal. Its message is the code alone: texts must not enter a history.
 */
const toFailure = ({ code, kind }: AppError): ApplicationFailure => {
  const nonRetryable = isPermanentError(kind);
  const failure = ApplicationFailure.create({ message: code, type: code, nonRetryable });
  // The log has the stack; a history must not have paths of this machine.
  failure.stack = '';
  return failure;
};

/** Wraps an activity: logs its errors and converts them for Temporal. */
const withFailures =
  <Args extends unknown[], Result>(logger: Logger, name: string, work: (...args: Args) => Promise<Result>) =>
  async (...args: Args): Promise<Result> => {
    try {
      return await work(...args);
    } catch (error) {
      if (error instanceof ApplicationFailure) throw error;
      if (!isAppError(error) || error.kind === 'bug')
        logger.error({ err: error, activity: name }, 'activity failed');
      else logger.info({ err: error, activity: name }, 'activity attempt failed');
      throw toFailure(toAppError(error));
    }
  };

/** Runs `work` with heartbeats. Its signal aborts when the worker stops or Temporal cancels it. */
const withHeartbeat = async <T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> => {
  const context = Context.current();
  const heartbeat = setInterval(() => context.heartbeat(), HEARTBEAT_MS);
  try {
    return await work(context.cancellationSignal);
  } catch (error) {
    if (!context.cancellationSignal.aborted) throw error;
    // Another worker continues: the turn is in the log, and does not stop with this activity.
    const stopping = {
      message: 'the worker stops',
      type: 'SERVICE.STOPPING',
      nextRetryDelay: '100ms',
    } as const;
    throw ApplicationFailure.create(stopping);
  } finally {
    clearInterval(heartbeat);
  }
};

/** Retries of tool calls, as the turns implement them. */
export interface ToolRetryPort {
  read: ToolActivities['readToolCall'];
  retry: ToolActivities['retryTool'];
}

export interface ActivityDeps {
  readonly runs: RunStreams;
  readonly logger: Logger;
  readonly tasks: TaskRunner;
  readonly retryTool: ToolRetryPort;
  readonly sweeps: Omit<SweepActivities, 'archiveOldEvents'>;
  readonly archiveOldEvents: (signal: AbortSignal) => Promise<number>;
  readonly tendApproval: ApprovalActivities['tendApproval'];
  readonly advanceDelivery: (
    delivery: ChannelDeliveryRef,
    signal: AbortSignal,
  ) => Promise<ChannelDeliveryProgress>;
}

export type Activities = RunActivities &
  ChannelActivities &
  ToolActivities &
  SweepActivities &
  ApprovalActivities;

/** Creates the activities of `@antiphon/agent-workflows`: one side effect each, safe to repeat. */
export const createActivities = ({
  runs,
  logger,
  tasks,
  retryTool,
  sweeps,
  archiveOldEvents,
  tendApproval,
  advanceDelivery,
}: ActivityDeps): Activities => {
  const inContext = <T>(name: string, work: () => Promise<T>) =>
    withFailures(logger, name, () => runWithContext(contextFrom('agent'), work));
  return {
    readRun: withFailures(logger, 'readRun', async ({ workspace, runId }) => {
      const { state, version } = await runs.read(workspace, runId);
      if (version === 0) throw notFound('RUN.NOT_FOUND', 'there is no run with this id');
      return progressOf(state);
    }),
    runTask: withFailures(logger, 'runTask', (task) =>
      withHeartbeat((signal) => tasks.run(task, signal, Context.current().info.attempt)),
    ),
    tendApproval: withFailures(logger, 'tendApproval', (approval) =>
      runWithContext(contextFrom('agent'), () => tendApproval(approval)),
    ),
    advanceDelivery: withFailures(logger, 'advanceDelivery', (delivery) =>
      runWithContext(contextFrom('agent'), () =>
        withHeartbeat((signal) => advanceDelivery(delivery, signal)),
      ),
    ),
    readToolCall: withFailures(logger, 'readToolCall', (call) => retryTool.read(call)),
    retryTool: withFailures(logger, 'retryTool', (call) => withHeartbeat(() => retryTool.retry(call))),
    reconcileRuns: inContext('reconcileRuns', sweeps.reconcileRuns),
    sweepTurns: inContext('sweepTurns', sweeps.sweepTurns),
    expireReservations: inContext('expireReservations', sweeps.expireReservations),
    learnVendorFigures: inContext('learnVendorFigures', sweeps.learnVendorFigures),
    rollBudgetPeriods: inContext('rollBudgetPeriods', sweeps.rollBudgetPeriods),
    deleteOldRows: inContext('deleteOldRows', sweeps.deleteOldRows),
    archiveOldEvents: withFailures(logger, 'archiveOldEvents', () => withHeartbeat(archiveOldEvents)),
  };
};
