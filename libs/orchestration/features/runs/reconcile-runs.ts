import type pg from 'pg';
import { runWorkflowId } from '@antiphon/contracts/agent';
import type { RunRef } from '@antiphon/agent-workflows';
import { acrossWorkspaces, translateDatabaseError } from '@antiphon/database';
import { failpoint } from '@antiphon/kernel';
import type { Logger } from '@antiphon/observability';
import { startWorkflowOnce } from '@antiphon/temporal';
import type { TemporalLink } from '@antiphon/temporal';
import type { TurnCommands } from '@antiphon/conversation-features';
import { cancelTurnsOf } from './cancel-run.handler.js';
import type { RunStreams } from './run-streams.js';

interface OpenRun {
  readonly workspace: string;
  readonly runId: string;
  readonly firstAgent: string;
  readonly isCancelling: boolean;
}

interface Row {
  readonly workspace: string;
  readonly run_id: string;
  readonly first_agent: string;
  readonly status: string;
  readonly first_position: string;
}

const PAGE = 500;
const OPEN_SQL = `select workspace, run_id, first_agent, status, first_position from agent_runs
  where ended_at is null and first_position > $1 order by first_position limit $2`;

/** Yields all open runs, oldest first. */
async function* readOpenRuns(pool: pg.Pool): AsyncGenerator<OpenRun> {
  let after = '0';
  for (;;) {
    const query = { name: 'agent_open_runs', text: OPEN_SQL, values: [after, PAGE] };
    const { rows } = await acrossWorkspaces(pool)
      .query<Row>(query)
      .catch((error: unknown) => {
        throw translateDatabaseError(error);
      });
    for (const row of rows)
      yield {
        workspace: row.workspace,
        runId: row.run_id,
        firstAgent: row.first_agent,
        isCancelling: row.status === 'cancelling',
      };
    if (rows.length < PAGE) return;
    after = rows.at(-1)?.first_position ?? after;
  }
}

export interface ReconcileRunsDeps {
  readonly runs: RunStreams;
  readonly pool: pg.Pool;
  readonly temporal: TemporalLink;
  readonly taskQueue: string;
  readonly turns: Pick<TurnCommands, 'cancelTurn'>;
  readonly logger: Logger;
}

/** Starts the Temporal workflow of a run, unless it is running. Throws `TEMPORAL.UNAVAILABLE`. */
export const startRunWorkflow = async (
  { temporal, taskQueue }: Pick<ReconcileRunsDeps, 'temporal' | 'taskQueue'>,
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

/** Cancels a run's turns. Logs an error, because the other runs must not wait for this one. */
const retryCancel = async (
  { runs, turns, logger }: ReconcileRunsDeps,
  { workspace, runId }: OpenRun,
): Promise<void> => {
  try {
    const { state } = await runs.read(workspace, runId);
    await cancelTurnsOf(turns, workspace, state);
  } catch (error) {
    logger.warn({ err: error, runId }, 'run turn cancellation failed');
  }
};

/**
 * Reconciles Temporal with the log: starts missing Temporal workflows of open runs, and cancels the
 * turns of cancelling runs. Returns the number of open runs.
 */
export const reconcileRuns = async (deps: ReconcileRunsDeps): Promise<number> => {
  let open = 0;
  for await (const run of readOpenRuns(deps.pool)) {
    const { workspace, runId, firstAgent, isCancelling } = run;
    open++;
    if (isCancelling) await retryCancel(deps, run);
    await startRunWorkflow(deps, { workspace, runId }, firstAgent);
  }
  return open;
};
