import type pg from 'pg';
import type { RunSummary, WorkflowSummary, listRuns, listWorkflows } from '@antiphon/contracts/agent';
import { decodeCursor, encodeCursor } from '@antiphon/contracts/log';
import type { z } from 'zod';
import { translateDatabaseError } from '@antiphon/database';
import { invalid } from '@antiphon/kernel';

type RunQuery = z.output<typeof listRuns.request>;
type WorkflowQuery = z.output<typeof listWorkflows.request>;

interface Page<T> {
  readonly items: T[];
  readonly nextCursor: string | null;
}

const positionOf = (cursor: string): number => {
  const position = decodeCursor(cursor);
  if (position === undefined) throw invalid('REQUEST.INVALID', 'this cursor is not one that a list answered');
  return position;
};

/** Newest first, before the cursor. */
const page = async <Row extends { first_position: string }, T>(
  pool: pg.Pool,
  text: string,
  values: unknown[],
  { limit, cursor }: { readonly limit: number; readonly cursor?: string | undefined },
  toItem: (row: Row) => T,
): Promise<Page<T>> => {
  const before = cursor === undefined ? null : positionOf(cursor);
  try {
    const { rows } = await pool.query<Row>({ text, values: [before, limit + 1, ...values] });
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

/** Makes the use cases behind `cmd.agent.run.list` and `cmd.agent.workflow.list`. */
export const createLists = (pool: pg.Pool) => ({
  listRuns: async (query: RunQuery): Promise<{ runs: RunSummary[]; nextCursor: string | null }> => {
    const values = [query.workspace, query.workflowId ?? null, query.status ?? null];
    const { items, nextCursor } = await page(pool, RUNS_SQL, values, query, (row: RunRow) => ({
      id: row.run_id,
      workflowId: row.workflow_id,
      name: row.name,
      status: row.status,
      startedAt: row.started_at.toISOString(),
      endedAt: row.ended_at?.toISOString() ?? null,
    }));
    return { runs: items, nextCursor };
  },
  listWorkflows: async (
    query: WorkflowQuery,
  ): Promise<{ workflows: WorkflowSummary[]; nextCursor: string | null }> => {
    const { items, nextCursor } = await page(
      pool,
      WORKFLOWS_SQL,
      [query.workspace],
      query,
      (row: WorkflowRow) => ({
        id: row.workflow_id,
        name: row.name,
        status: row.status,
        version: row.version,
        nodes: row.nodes,
        updatedAt: row.updated_at.toISOString(),
      }),
    );
    return { workflows: items, nextCursor };
  },
});
