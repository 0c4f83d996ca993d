import { Controller, Inject } from '@nestjs/common';
import { PAST_READS } from '@antiphon/agents-features';
import { RUN_STREAMS, WORKFLOW_STREAMS } from './run-streams.js';
import { foldRun, getRun, getWorkflow, listRuns, listWorkflows } from '@antiphon/contracts/agent';
import type { RunSummary, RunView, WorkflowSummary, WorkflowView } from '@antiphon/contracts/agent';
import { encodeCursor } from '@antiphon/contracts/log';
import type { z } from 'zod';
import type { RunState, WorkflowState } from '@antiphon/orchestration-domain';
import { translateDatabaseError } from '@antiphon/database';
import type { WorkspaceQueries } from '@antiphon/database';
import type { PastReads } from '@antiphon/event-store';
import { positionOfCursor } from '@antiphon/event-store';
import { notFound } from '@antiphon/kernel';
import { HandleRequest } from '@antiphon/messaging';
import type { RunStreams, WorkflowStreams } from './run-streams.js';

const noRun = (): Error => notFound('RUN.NOT_FOUND', 'there is no run with this id');

/** Returns the status of a run that has started. Throws `RUN.NOT_FOUND`. */
export const requireRunStatus = ({ status }: RunState): RunView['status'] => {
  if (status === 'new') throw noRun();
  return status;
};

/** Returns the public view of a workflow. Throws `WORKFLOW.NOT_FOUND`. */
export const workflowView = (state: WorkflowState): WorkflowView => {
  const { status, definition } = state;
  if (status === 'new' || status === 'deleted' || definition === null)
    throw notFound('WORKFLOW.NOT_FOUND', 'there is no workflow with this id');
  return {
    id: state.workflowId,
    name: definition.name,
    status,
    version: state.version,
    nodes: definition.nodes.length,
    updatedAt: state.updatedAt,
    definition,
    order: [...state.order],
    problem: state.problem,
    lastRunId: state.lastRunId,
  };
};

interface Page<T> {
  readonly items: T[];
  readonly nextCursor: string | null;
}

/** Reads a page of rows, newest first, from before the cursor. */
const readPage = async <Row extends { first_position: string }, T>(
  queries: WorkspaceQueries,
  text: string,
  values: [workspace: string, ...unknown[]],
  { limit, cursor }: { readonly limit: number; readonly cursor?: string | undefined },
  toItem: (row: Row) => T,
): Promise<Page<T>> => {
  const before = positionOfCursor(cursor);
  try {
    const { rows } = await queries.query<Row>({
      text,
      values: [before, limit + 1, ...values],
    });
    const shown = rows.slice(0, limit);
    const last = shown.at(-1);
    return {
      items: shown.map(toItem),
      nextCursor: rows.length > limit && last ? encodeCursor(Number(last.first_position)) : null,
    };
  } catch (error) {
    throw translateDatabaseError(error);
  }
};

interface RunRow {
  readonly run_id: string;
  readonly workflow_id: string | null;
  readonly name: string;
  readonly status: RunSummary['status'];
  readonly started_at: Date;
  readonly ended_at: Date | null;
  readonly first_position: string;
}
interface WorkflowRow {
  readonly workflow_id: string;
  readonly name: string;
  readonly status: WorkflowSummary['status'];
  readonly version: number;
  readonly nodes: number;
  readonly updated_at: Date;
  readonly first_position: string;
}

const RUNS_SQL = `select run_id, workflow_id, name, status, started_at, ended_at, first_position from agent_runs
  where workspace = $3 and ($1::bigint is null or first_position < $1)
    and ($4::uuid is null or workflow_id = $4) and ($5::text is null or status = $5)
  order by first_position desc limit $2`;
const WORKFLOWS_SQL = `select workflow_id, name, status, version, nodes, updated_at, first_position from agent_workflows
  where workspace = $3 and ($1::bigint is null or first_position < $1) order by first_position desc limit $2`;

const toRunSummary = (row: RunRow): RunSummary => ({
  id: row.run_id,
  workflowId: row.workflow_id,
  name: row.name,
  status: row.status,
  startedAt: row.started_at.toISOString(),
  endedAt: row.ended_at?.toISOString() ?? null,
});
const toWorkflowSummary = (row: WorkflowRow): WorkflowSummary => ({
  id: row.workflow_id,
  name: row.name,
  status: row.status,
  version: row.version,
  nodes: row.nodes,
  updatedAt: row.updated_at.toISOString(),
});

/** Serves reads of workflows and runs: one of them from its events, lists from the projection. */
@Controller()
export class RunQueries {
  constructor(
    @Inject(WORKFLOW_STREAMS) private readonly workflows: WorkflowStreams,
    @Inject(RUN_STREAMS) private readonly runs: RunStreams,
    @Inject(PAST_READS) private readonly past: PastReads,
  ) {}

  @HandleRequest(getRun)
  getRun({ workspace, runId, at }: z.output<typeof getRun.request>): Promise<z.input<typeof getRun.reply>> {
    return this.past.readAt(at, async (upTo) => {
      const run = foldRun(await this.runs.readEvents(workspace, runId, upTo));
      if (run === null) throw noRun();
      return run;
    });
  }

  @HandleRequest(listRuns)
  listRuns(query: z.output<typeof listRuns.request>): Promise<z.output<typeof listRuns.reply>> {
    const { workspace, workflowId = null, status = null, at } = query;
    const values: [string, ...unknown[]] = [workspace, workflowId, status];
    return this.past.readAsOf(workspace, at, async (queries) => {
      const { items, nextCursor } = await readPage(queries, RUNS_SQL, values, query, toRunSummary);
      return { runs: items, nextCursor };
    });
  }

  @HandleRequest(getWorkflow)
  getWorkflow({
    workspace,
    workflowId,
    at,
  }: z.output<typeof getWorkflow.request>): Promise<z.input<typeof getWorkflow.reply>> {
    return this.past.readAt(at, async (upTo) =>
      workflowView((await this.workflows.read(workspace, workflowId, upTo)).state),
    );
  }

  @HandleRequest(listWorkflows)
  listWorkflows(
    query: z.output<typeof listWorkflows.request>,
  ): Promise<z.output<typeof listWorkflows.reply>> {
    const { workspace, at } = query;
    return this.past.readAsOf(workspace, at, async (queries) => {
      const { items, nextCursor } = await readPage(
        queries,
        WORKFLOWS_SQL,
        [workspace],
        query,
        toWorkflowSummary,
      );
      return { workflows: items, nextCursor };
    });
  }
}
