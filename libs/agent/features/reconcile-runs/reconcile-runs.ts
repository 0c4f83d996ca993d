import type pg from 'pg';
import { runWorkflowId } from '@antiphon/contracts/agent';
import type { RunRef } from '@antiphon/agent-workflows';
import { startWorkflowOnce } from '@antiphon/temporal';
import type { TemporalLink } from '@antiphon/temporal';
import { cancelTurnsOf } from '../cancel-run/cancel-run.handler.js';
import type { CancelTurn } from '../cancel-turn/cancel-turn.handler.js';
import type { WorkflowServices } from '../event-fold/workflow-services.js';
import { openRuns } from './open-runs.js';

export interface ReconcileDeps {
  readonly services: WorkflowServices;
  readonly pool: pg.Pool;
  readonly temporal: TemporalLink;
  readonly taskQueue: string;
  readonly cancelTurn: CancelTurn;
}

/** Gives a run its Temporal workflow, unless it has one that runs. Throws `TEMPORAL.UNAVAILABLE`. */
export const beginRun = (
  { temporal, taskQueue }: Pick<ReconcileDeps, 'temporal' | 'taskQueue'>,
  run: RunRef,
  firstAgent: string,
): Promise<void> =>
  startWorkflowOnce(temporal, {
    workflowType: 'agentRun',
    workflowId: runWorkflowId(run.runId),
    taskQueue,
    input: run,
    keywords: { AntiphonWorkspace: run.workspace, AntiphonAgent: firstAgent },
  });

/**
 * Makes the sweep that brings Temporal back to what the log says: each open run has its Temporal workflow, and a run that
 * is being cancelled has its turns cancelled, whoever died on the way. Answers how many runs are open.
 */
export const createReconcileRuns = (deps: ReconcileDeps) => async (): Promise<number> => {
  const { services, pool, cancelTurn } = deps;
  let open = 0;
  for await (const { workspace, runId, firstAgent, cancelling } of openRuns(pool)) {
    open++;
    if (cancelling)
      await cancelTurnsOf(cancelTurn, workspace, (await services.runs.read(workspace, runId)).state);
    await beginRun(deps, { workspace, runId }, firstAgent);
  }
  return open;
};
