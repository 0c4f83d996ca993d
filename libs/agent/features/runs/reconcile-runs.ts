import type pg from 'pg';
import { runWorkflowId } from '@antiphon/contracts/agent';
import { failpoint } from '@antiphon/kernel';
import type { RunRef } from '@antiphon/agent-workflows';
import { startWorkflowOnce } from '@antiphon/temporal';
import type { TemporalLink } from '@antiphon/temporal';
import { cancelTurnsOf } from './cancel-run.handler.js';
import type { CancelTurn } from '../turns/cancel-turn.handler.js';
import type { WorkflowServices } from './workflow-services.js';
import { openRuns } from './open-runs.js';
import type { OpenRun } from './open-runs.js';

export interface ReconcileDeps {
  readonly services: WorkflowServices;
  readonly pool: pg.Pool;
  readonly temporal: TemporalLink;
  readonly taskQueue: string;
  readonly cancelTurn: CancelTurn;
}

/** Gives a run its Temporal workflow, unless it has one that runs. Throws `TEMPORAL.UNAVAILABLE`. */
export const beginRun = async (
  { temporal, taskQueue }: Pick<ReconcileDeps, 'temporal' | 'taskQueue'>,
  run: RunRef,
  firstAgent: string,
): Promise<void> => {
  await startWorkflowOnce(temporal, {
    workflowType: 'agentRun',
    workflowId: runWorkflowId(run.runId),
    taskQueue,
    input: run,
    keywords: { AntiphonWorkspace: run.workspace, AntiphonAgent: firstAgent },
  });
  await failpoint('agent.run.begun');
};

/** One run's trouble must not keep the others waiting. */
const cancelAgain = async ({ services, cancelTurn }: ReconcileDeps, run: OpenRun): Promise<void> => {
  try {
    const { state } = await services.runs.read(run.workspace, run.runId);
    await cancelTurnsOf(cancelTurn, run.workspace, state);
  } catch (error) {
    services.logger.warn(
      { err: error, runId: run.runId },
      'turns of a run could not be cancelled; they will be',
    );
  }
};

/**
 * Makes the sweep that brings Temporal back to what the log says: each open run has its Temporal workflow, and a run that
 * is being cancelled has its turns cancelled, whoever died on the way. Answers how many runs are open.
 */
export const createReconcileRuns = (deps: ReconcileDeps) => async (): Promise<number> => {
  let open = 0;
  for await (const run of openRuns(deps.pool)) {
    const { workspace, runId, firstAgent, cancelling } = run;
    open++;
    if (cancelling) await cancelAgain(deps, run);
    await beginRun(deps, { workspace, runId }, firstAgent);
  }
  return open;
};
