import { ApplicationFailure } from '@temporalio/common';
import { Context } from '@temporalio/activity';
import type {
  ApprovalActivities,
  RunActivities,
  SweepActivities,
  ToolActivities,
} from '@antiphon/agent-workflows';
import { isAppError, notFound, toAppError } from '@antiphon/kernel';
import type { AppError, ErrorKind } from '@antiphon/kernel';
import type { Logger } from '@antiphon/observability';
import { contextFrom, runWithContext } from '@antiphon/observability';
import type { ArchiveOldEvents } from '../maintenance/archive-old-events.js';
import type { WorkflowServices } from './workflow-services.js';
import type { RetryTool } from '../turns/tool-retry.js';
import { progressOf } from './run-task.js';
import type { createRunTask } from './run-task.js';

const HEARTBEAT_MS = 1_000;
const FOR_GOOD: ReadonlySet<ErrorKind> = new Set(['invalid', 'forbidden', 'not_found', 'rejected']);

/** By the house's table (house style §5). Its code alone: a message could carry what a history must not. */
const toFailure = (error: AppError): ApplicationFailure => {
  const { code, kind } = error;
  const failure = ApplicationFailure.create({ message: code, type: code, nonRetryable: FOR_GOOD.has(kind) });
  // The log line has it; a history is no place for a machine's paths.
  failure.stack = '';
  return failure;
};

const translated =
  <Args extends unknown[], Result>(logger: Logger, name: string, work: (...args: Args) => Promise<Result>) =>
  async (...args: Args): Promise<Result> => {
    try {
      return await work(...args);
    } catch (error) {
      if (error instanceof ApplicationFailure) throw error;
      if (!isAppError(error) || error.kind === 'bug')
        logger.error({ err: error, activity: name }, 'an activity failed');
      else
        logger.info(
          { err: error, activity: name },
          'an activity did not succeed; Temporal decides what follows',
        );
      throw toFailure(toAppError(error));
    }
  };

/** Runs `work` while telling Temporal that it is alive; its signal says that the worker stops, or Temporal gave it up. */
const alive = async <T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> => {
  const context = Context.current();
  const beat = setInterval(() => context.heartbeat(), HEARTBEAT_MS);
  try {
    return await work(context.cancellationSignal);
  } catch (error) {
    if (!context.cancellationSignal.aborted) throw error;
    // Whoever polls next goes on: the turn itself is in the log, and does not stop with its follower.
    const stopping = {
      message: 'the worker stops',
      type: 'SERVICE.STOPPING',
      nextRetryDelay: '100ms',
    } as const;
    throw ApplicationFailure.create(stopping);
  } finally {
    clearInterval(beat);
  }
};

export interface ActivityDeps {
  readonly services: WorkflowServices;
  readonly runTask: ReturnType<typeof createRunTask>;
  readonly retryTool: RetryTool;
  readonly sweeps: Omit<SweepActivities, 'archiveOldEvents'>;
  readonly archiveOldEvents: ArchiveOldEvents;
  readonly tendApproval: ApprovalActivities['tendApproval'];
}

/** What the worker does for the Temporal workflows of `@antiphon/agent-workflows`: one side effect each, safe to repeat. */
export const createActivities = ({
  services,
  runTask,
  retryTool,
  sweeps,
  archiveOldEvents,
  tendApproval,
}: ActivityDeps): RunActivities & ToolActivities & SweepActivities & ApprovalActivities => {
  const { logger, runs } = services;
  const within = <T>(name: string, work: () => Promise<T>) =>
    translated(logger, name, () => runWithContext(contextFrom('agent'), work));
  return {
    readRun: translated(logger, 'readRun', async ({ workspace, runId }) => {
      const { state, version } = await runs.read(workspace, runId);
      if (version === 0) throw notFound('RUN.NOT_FOUND', 'there is no run with this id');
      return progressOf(state);
    }),
    runTask: translated(logger, 'runTask', (task) => alive((signal) => runTask(task, signal))),
    tendApproval: translated(logger, 'tendApproval', (approval) =>
      runWithContext(contextFrom('agent'), () => tendApproval(approval)),
    ),
    readToolCall: translated(logger, 'readToolCall', (call) => retryTool.read(call)),
    retryTool: translated(logger, 'retryTool', (call) => alive(() => retryTool.again(call))),
    reconcileRuns: within('reconcileRuns', sweeps.reconcileRuns),
    sweepTurns: within('sweepTurns', sweeps.sweepTurns),
    expireReservations: within('expireReservations', sweeps.expireReservations),
    rollBudgetPeriods: within('rollBudgetPeriods', sweeps.rollBudgetPeriods),
    archiveOldEvents: translated(logger, 'archiveOldEvents', () => alive(archiveOldEvents)),
  };
};
