import { textOf } from '@antiphon/contracts/causes';
import type pg from 'pg';
import type { ListedRow, WorkspaceQueries } from '@antiphon/database';
import { TASK_STATES, TaskItem } from '@antiphon/contracts/agent';
import type { TaskState } from '@antiphon/contracts/agent';
import type { TaskFold } from '@antiphon/orchestration-domain';
import { cutListPage, listPageSql, translateDatabaseError } from '@antiphon/database';
import { requireCursor } from '@antiphon/event-store';
import { notFound } from '@antiphon/kernel';

/** Returns the error of an unknown task. */
export const taskNotFound = (): Error => notFound('TASK.NOT_FOUND', 'there is no task with this id');

/**
 * Returns the public view of a task of the queue. `retriedBy` is the newest task that tries it
 * again. Throws `TASK.NOT_FOUND`.
 */
export const taskItem = (state: TaskFold, retriedBy: string | null = null): TaskItem => {
  const { queued, status } = state;
  if (queued === null || status === 'new') throw taskNotFound();
  return {
    id: queued.taskId,
    kind: 'task',
    title: queued.title,
    state: status,
    priority: queued.priority,
    capabilities: queued.capabilities,
    agentId: state.agentId ?? queued.agentId,
    worker: state.worker,
    epoch: state.epoch,
    strikes: state.strikes.map(textOf),
    project: queued.project,
    parentAgentId: queued.parentAgentId,
    parentTaskId: queued.parentTaskId,
    retryOf: queued.retryOf ?? null,
    retriedBy,
    deadline: queued.deadline,
    sessionId: state.sessionId,
    turnId: state.turnId,
    queuedAt: queued.at,
    startedAt: state.startedAt,
    endedAt: state.endedAt,
    result: state.result,
  };
};

interface TaskRow {
  readonly id: string;
  readonly kind: TaskItem['kind'];
  readonly title: string;
  readonly state: TaskState;
  readonly priority: number;
  readonly capabilities: string[];
  readonly agent_id: string | null;
  readonly worker: string | null;
  readonly epoch: number;
  readonly strikes: string[];
  readonly project: string | null;
  readonly parent_agent_id: string | null;
  readonly parent_task_id: string | null;
  readonly retry_of: string | null;
  readonly retried_by: string | null;
  readonly deadline: Date | null;
  readonly session_id: string | null;
  readonly turn_id: string | null;
  readonly queued_at: Date;
  readonly started_at: Date | null;
  readonly ended_at: Date | null;
  readonly result: unknown;
  readonly first_position: string;
}

const toItem = (row: TaskRow): TaskItem =>
  TaskItem.parse({
    id: row.id,
    kind: row.kind,
    title: row.title,
    state: row.state,
    priority: row.priority,
    capabilities: row.capabilities,
    agentId: row.agent_id,
    worker: row.worker,
    epoch: row.epoch,
    strikes: row.strikes,
    project: row.project,
    parentAgentId: row.parent_agent_id,
    parentTaskId: row.parent_task_id,
    retryOf: row.retry_of,
    retriedBy: row.retried_by,
    deadline: row.deadline?.toISOString() ?? null,
    sessionId: row.session_id,
    turnId: row.turn_id,
    queuedAt: row.queued_at.toISOString(),
    startedAt: row.started_at?.toISOString() ?? null,
    endedAt: row.ended_at?.toISOString() ?? null,
    result: row.result,
  });

/** Nodes of one run have the same position, so that the cursor also has the id. */
const encodeCursor = ({ first_position, id }: TaskRow): string =>
  Buffer.from(`t${first_position}/${id}`, 'utf8').toString('base64url');

const decodeCursor = (cursor: string): readonly [position: string, id: string] | undefined => {
  const match = /^t(\d{1,15})\/(.{1,200})$/.exec(Buffer.from(cursor, 'base64url').toString('utf8'));
  return match?.[1] && match[2] ? [match[1], match[2]] : undefined;
};

/** Tasks that try the task of a row again. */
const RETRIES = `from agent_tasks retry
    where retry.retry_of = agent_tasks.id and retry.workspace = agent_tasks.workspace`;
const IS_RETRIED = `exists (select 1 ${RETRIES})`;
const COLUMNS = `id, kind, title, state, priority, capabilities, agent_id, worker, epoch, strikes, project,
  parent_agent_id, parent_task_id, retry_of, (select retry.id ${RETRIES} order by retry.first_position desc limit 1) as retried_by,
  deadline, session_id, turn_id, queued_at, started_at, ended_at, result, first_position`;
/** Filters of kind, capability, title, parent and retry, which follow those of state and agent. */
const FILTERS = `($7::text is null or kind = $7) and ($8::text is null or capabilities ? $8)
    and ($9::text is null or position($9 in lower(title)) > 0) and ($10::uuid is null or parent_task_id = $10)
    and ($11::boolean is null or ${IS_RETRIED} = $11)`;
const COUNT_SQL = `select state, count(*) as count,
    count(*) filter (where state = 'failed' and not ${IS_RETRIED}) as not_retried from agent_tasks
  where workspace = $1 and $2::bigint is null and $3::text = '' and $4::text is null
    and ($5::text is null or agent_id = $5) and ($6::text is null or project = $6) and ${FILTERS}
  group by state`;
const LIST_SQL = listPageSql(
  `select ${COLUMNS} from agent_tasks
  where workspace = $1 and ($2::bigint is null or (first_position, id) < ($2, $3))
    and ($4::text is null or state = $4) and ($5::text is null or agent_id = $5)
    and ($6::text is null or project = $6) and ${FILTERS}
  order by first_position desc, id desc limit $12 offset $13`,
  `octet_length(r.title) + coalesce(octet_length(r.result::text), 0)`,
);
const ROW_SQL = `select ${COLUMNS} from agent_tasks where workspace = $1 and id = $2`;
// The first event of a retry never changes, so that the live table also answers for the past.
const RETRY_SQL = `select id from agent_tasks where workspace = $1 and retry_of = $2 and first_position <= $3
  order by first_position desc limit 1`;

export interface TaskFilter {
  readonly workspace: string;
  readonly state?: string | undefined;
  readonly agent?: string | undefined;
  readonly project?: string | undefined;
  readonly kind?: TaskItem['kind'] | undefined;
  readonly capability?: string | undefined;
  /** Text that the title has, without regard to case. */
  readonly q?: string | undefined;
  /** Task that delegated them. */
  readonly parent?: string | undefined;
  /** Whether another task tries them again. */
  readonly retried?: boolean | undefined;
  readonly limit: number;
  readonly cursor?: string | undefined;
  /** Number of tasks to skip after the cursor. */
  readonly offset?: number;
}

const select = async <Row extends pg.QueryResultRow>(
  queries: WorkspaceQueries,
  query: pg.QueryConfig,
): Promise<Row[]> => {
  try {
    return (await queries.query<Row>(query)).rows;
  } catch (error) {
    throw translateDatabaseError(error);
  }
};

const filtersOf = (filter: TaskFilter): (string | boolean | null)[] => {
  const { agent, project, kind, capability, q, parent, retried } = filter;
  return [agent, project, kind, capability, q?.toLowerCase(), parent, retried].map((value) => value ?? null);
};

/** Numbers of tasks by state, and of failed ones that no other task tries again. */
export interface TaskCounts {
  readonly counts: Record<TaskState, number>;
  readonly failedAndNotRetried: number;
}

/** Counts the tasks of a filter by state, those of its own state and of all other ones. */
export const countTasks = async (queries: WorkspaceQueries, filter: TaskFilter): Promise<TaskCounts> => {
  const values = [filter.workspace, null, '', null, ...filtersOf(filter)];
  const counts = Object.fromEntries(TASK_STATES.map((state) => [state, 0])) as Record<TaskState, number>;
  const rows = await select<{ state: TaskState; count: string; not_retried: string }>(queries, {
    ...{ name: 'agent_tasks_count', text: COUNT_SQL, values },
  });
  for (const { state, count } of rows) counts[state] = Number(count);
  const failed = rows.find(({ state }) => state === 'failed');
  return { counts, failedAndNotRetried: Number(failed?.not_retried ?? 0) };
};

/** Lists tasks of the queue and nodes of runs, newest first. */
export const readTasks = async (
  queries: WorkspaceQueries,
  filter: TaskFilter,
): Promise<{ readonly tasks: TaskItem[]; readonly nextCursor: string | null }> => {
  const { workspace, state = undefined, limit, cursor, offset = 0 } = filter;
  const [before, id] = cursor === undefined ? [null, ''] : requireCursor(decodeCursor(cursor));
  const values = [workspace, before, id, state ?? null, ...filtersOf(filter), limit + 1, offset];
  const rows = await select<TaskRow & ListedRow>(queries, {
    name: 'agent_tasks_list',
    text: LIST_SQL,
    values,
  });
  const { shown, hasMore } = cutListPage(rows, limit);
  const last = shown.at(-1);
  return { tasks: shown.map(toItem), nextCursor: hasMore && last ? encodeCursor(last) : null };
};

/**
 * Reads the row of a node of a run, or of a task whose events were archived. Throws
 * `TASK.NOT_FOUND`.
 */
export const readTaskRow = async (
  queries: WorkspaceQueries,
  workspace: string,
  id: string,
): Promise<TaskItem> => {
  const [row] = await select<TaskRow>(queries, {
    name: 'agent_tasks_row',
    text: ROW_SQL,
    values: [workspace, id],
  });
  if (!row) throw taskNotFound();
  return toItem(row);
};

/** Returns the newest task that tries a task again, up to a position of the log; null for none. */
export const readRetryOf = async (
  queries: WorkspaceQueries,
  of: { readonly workspace: string; readonly taskId: string; readonly upTo: number },
): Promise<{ readonly retriedBy: string | null }> => {
  const [row] = await select<{ id: string }>(queries, {
    ...{ name: 'agent_tasks_retry', text: RETRY_SQL, values: [of.workspace, of.taskId, of.upTo] },
  });
  return { retriedBy: row?.id ?? null };
};
