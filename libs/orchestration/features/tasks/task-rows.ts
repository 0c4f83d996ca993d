import type pg from 'pg';
import { createNamedQuery } from '@antiphon/event-store';

/** Columns of `agent_tasks`. Times and JSON stay texts, so that a row is saved as it was read. */
export interface TaskRow {
  readonly workspace: string;
  /** UUID, or `<runId>/<nodeId>`. */
  readonly id: string;
  readonly kind: 'task' | 'run_node';
  readonly title: string;
  state: string;
  readonly priority: number;
  readonly capabilities: string;
  agent_id: string | null;
  readonly pinned_to: string | null;
  worker: string | null;
  epoch: number;
  strikes: string;
  readonly project: string | null;
  readonly parent_agent_id: string | null;
  readonly parent_task_id: string | null;
  readonly retry_of: string | null;
  readonly deadline: string | null;
  session_id: string | null;
  turn_id: string | null;
  readonly queued_at: string;
  started_at: string | null;
  ended_at: string | null;
  result: string | null;
  readonly first_position: string;
}

/** Type of each column, in the order of the statements. */
const COLUMNS = {
  workspace: 'text',
  id: 'text',
  kind: 'text',
  title: 'text',
  state: 'text',
  priority: 'integer',
  capabilities: 'jsonb',
  agent_id: 'text',
  pinned_to: 'text',
  worker: 'text',
  epoch: 'integer',
  strikes: 'jsonb',
  project: 'text',
  parent_agent_id: 'text',
  parent_task_id: 'uuid',
  retry_of: 'text',
  deadline: 'timestamptz',
  session_id: 'uuid',
  turn_id: 'uuid',
  queued_at: 'timestamptz',
  started_at: 'timestamptz',
  ended_at: 'timestamptz',
  result: 'jsonb',
  first_position: 'bigint',
} as const satisfies Record<keyof TaskRow, string>;

const NAMES = Object.keys(COLUMNS) as (keyof TaskRow)[];
/** Columns that an event after the first one changes. */
const CHANGED = 'state agent_id worker epoch strikes session_id turn_id started_at ended_at result'.split(
  ' ',
);
const isText = (name: keyof TaskRow): boolean => ['jsonb', 'timestamptz'].includes(COLUMNS[name]);
const READ = NAMES.map((name) => (isText(name) ? `t.${name}::text` : `t.${name}`)).join(', ');

// Bounds of ids are parameters: under a policy, a concatenation reaches no index.
export const LOAD_TASKS_SQL = `select ${READ} from unnest($1::text[], $2::text[], $3::text[]) as k (workspace, first, last)
  cross join lateral (select * from agent_tasks t where t.workspace = k.workspace
    and t.id >= k.first and t.id <= k.last order by t.id) t`;
const SAVE_SQL = `insert into agent_tasks (${NAMES.join(', ')})
  select * from unnest(${NAMES.map((name, index) => `$${index + 1}::${COLUMNS[name]}[]`).join(', ')})
  on conflict (workspace, id) do update set ${CHANGED.map((name) => `${name} = excluded.${name}`).join(', ')}`;

/** First and last id of a task, or of the nodes of a run. */
export interface TaskRange {
  readonly workspace: string;
  readonly first: string;
  readonly last: string;
}

const run = createNamedQuery('agent_tasks');

/** Reads the rows of ranges. The rows of a range that names no task are none. */
export const loadTasks = (client: pg.ClientBase, ranges: readonly TaskRange[]): Promise<TaskRow[]> =>
  run<TaskRow & pg.QueryResultRow>(client, 'load', LOAD_TASKS_SQL, [
    ranges.map(({ workspace }) => workspace),
    ranges.map(({ first }) => first),
    ranges.map(({ last }) => last),
  ]);

/** Inserts or updates rows with one statement. */
export const saveTasks = async (client: pg.ClientBase, rows: readonly TaskRow[]): Promise<void> => {
  if (rows.length === 0) return;
  await run(
    client,
    'save',
    SAVE_SQL,
    NAMES.map((name) => rows.map((row) => row[name])),
  );
};
