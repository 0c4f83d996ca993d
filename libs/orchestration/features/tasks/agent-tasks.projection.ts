import { textOf } from '@antiphon/contracts/causes';
import { strikeOf } from '@antiphon/orchestration-domain';
import type pg from 'pg';
import { RunEvent, TaskEvent } from '@antiphon/contracts/agent';
import { upcast } from '@antiphon/contracts/events';
import type { ProjectionDefinition, RecordedEvent } from '@antiphon/event-store';
import { loadTasks, saveTasks, type TaskRange, type TaskRow } from './task-rows.js';

/** Maximum number of characters of a node's output in its row. */
const MAX_TEXT = 65_536;

const keyOf = (workspace: string, id: string): string => `${workspace}\n${id}`;
/** Returns the key of a task, or that of the run of a node. */
const groupOf = (workspace: string, id: string): string => keyOf(workspace, id.split('/', 1)[0] ?? id);

/** Rows that a batch reads or changes. */
class TaskRows {
  /** By task or run, and then by id. */
  readonly #groups = new Map<string, Map<string, TaskRow>>();
  readonly #changed = new Set<TaskRow>();

  constructor(stored: readonly TaskRow[]) {
    for (const row of stored) this.#groupOf(row.workspace, row.id).set(row.id, row);
  }

  /** Adds a row. The first event of a task creates its row, and a repeat changes nothing. */
  add(row: TaskRow): void {
    const group = this.#groupOf(row.workspace, row.id);
    if (group.has(row.id)) return;
    group.set(row.id, row);
    this.#changed.add(row);
  }

  /** Changes a row. An event of an unknown task changes nothing. */
  change(workspace: string, id: string, apply: (row: TaskRow) => void): void {
    const row = this.#groupOf(workspace, id).get(id);
    if (!row) return;
    apply(row);
    this.#changed.add(row);
  }

  /** Cancels the nodes of a run that have not ended. */
  endNodes(workspace: string, runId: string, at: string): void {
    for (const { id, ended_at: endedAt } of this.#groupOf(workspace, runId).values())
      if (id !== runId && endedAt === null)
        this.change(workspace, id, (row) => Object.assign(row, { state: 'cancelled', ended_at: at }));
  }

  changed(): readonly TaskRow[] {
    return [...this.#changed];
  }

  #groupOf(workspace: string, id: string): Map<string, TaskRow> {
    const key = groupOf(workspace, id);
    const group = this.#groups.get(key) ?? new Map<string, TaskRow>();
    this.#groups.set(key, group);
    return group;
  }
}

const EMPTY = {
  ...{ state: 'queued', agent_id: null, pinned_to: null, worker: null, epoch: 0, strikes: '[]' },
  ...{ project: null, parent_agent_id: null, parent_task_id: null, retry_of: null, deadline: null },
  ...{ session_id: null, turn_id: null, started_at: null, ended_at: null, result: null },
};

const addStrike = (row: TaskRow, strike: string | null): void => {
  if (strike !== null) row.strikes = JSON.stringify([...(JSON.parse(row.strikes) as string[]), strike]);
};

type Queued = Extract<TaskEvent, { type: 'TaskQueued' }>['data'];

const queuedRow = (data: Queued, { workspace, position }: RecordedEvent): TaskRow => ({
  ...EMPTY,
  ...{ workspace, id: data.taskId, kind: 'task' as const, title: data.title, priority: data.priority },
  capabilities: JSON.stringify(data.capabilities),
  ...{ agent_id: data.agentId, pinned_to: data.agentId, project: data.project },
  ...{ parent_agent_id: data.parentAgentId, parent_task_id: data.parentTaskId, deadline: data.deadline },
  ...{ retry_of: data.retryOf ?? null, queued_at: data.at, first_position: String(position) },
});

const applyTaskEvent = (rows: TaskRows, { type, data }: TaskEvent, at: RecordedEvent): void => {
  const change = (apply: (row: TaskRow) => void): void => rows.change(at.workspace, data.taskId, apply);
  switch (type) {
    case 'TaskQueued':
      return rows.add(queuedRow(data, at));
    case 'TaskAssigned':
      return change((row) => {
        Object.assign(row, { state: 'assigned', epoch: data.epoch, worker: data.worker });
        Object.assign(row, { agent_id: data.agentId ?? row.agent_id, session_id: null, turn_id: null });
      });
    case 'TaskBegun':
      return change((row) => {
        Object.assign(row, { state: 'running', session_id: data.sessionId, turn_id: data.turnId });
        row.started_at ??= data.at;
      });
    case 'TaskRequeued':
      return change((row) => {
        // A task that is pinned to no agent may go to any other one.
        Object.assign(row, { state: 'queued', worker: null, agent_id: row.pinned_to });
        addStrike(row, data.reason === 'failed' ? textOf(strikeOf(data)) : null);
      });
    case 'TaskEnded':
      return change((row) => {
        const [result, strikes] = [JSON.stringify(data.result), JSON.stringify(data.strikes.map(textOf))];
        Object.assign(row, { state: data.status, ended_at: data.at, result, strikes });
      });
    case 'TaskResultRefused':
    case 'TaskCancelRequested':
  }
};

type RunStarted = Extract<RunEvent, { type: 'RunStarted' }>['data'];

const nodeRows = (data: RunStarted, { workspace, position }: RecordedEvent): TaskRow[] =>
  data.definition.nodes.map(({ id, agent }) => ({
    ...EMPTY,
    ...{
      workspace,
      id: `${data.runId}/${id}`,
      kind: 'run_node' as const,
      title: `${data.definition.name}: ${id}`,
    },
    ...{ priority: 5, capabilities: '[]', agent_id: agent ?? null },
    ...{ queued_at: data.startedAt, first_position: String(position) },
  }));

/** Returns the beginning of a text, in characters as the database counts them. */
const cut = (text: string): string =>
  text.length <= MAX_TEXT ? text : Array.from(text).slice(0, MAX_TEXT).join('');

interface NodeEnd {
  readonly state: string;
  readonly at: string;
  readonly strike?: string;
  readonly text?: string;
  readonly code?: string | null;
}

const endNode = (row: TaskRow, { state, at, strike, text = '', code = null }: NodeEnd): void => {
  addStrike(row, strike ?? null);
  const ids = { sessionId: row.session_id, turnId: row.turn_id };
  const result = JSON.stringify({ status: state, text: cut(text), ...ids, code });
  Object.assign(row, { state, ended_at: at, result });
};

/** Applies an event of a node. Any other event of a run changes no node. */
const applyNodeEvent = (row: TaskRow, { type, data }: RunEvent): void => {
  switch (type) {
    case 'TaskStarted': {
      const { attempt, sessionId, turnId, startedAt } = data;
      const worker = row.agent_id === null ? null : `agent/${row.agent_id}`;
      Object.assign(row, { state: 'running', epoch: attempt, worker });
      Object.assign(row, { session_id: sessionId, turn_id: turnId, started_at: row.started_at ?? startedAt });
      return;
    }
    case 'TaskAttemptFailed':
      Object.assign(row, { state: 'queued', worker: null });
      return addStrike(row, textOf(data.cause));
    case 'TaskCompleted':
      return endNode(row, { state: 'completed', at: data.completedAt, text: data.output });
    case 'TaskFailed':
      return endNode(row, {
        state: 'failed',
        at: data.failedAt,
        strike: textOf(data.cause),
        code: data.code,
      });
    case 'TaskCancelled':
      return endNode(row, { state: 'cancelled', at: data.cancelledAt });
    default:
  }
};

const applyRunEvent = (rows: TaskRows, event: RunEvent, at: RecordedEvent): void => {
  const { type, data } = event;
  switch (type) {
    case 'RunStarted':
      return nodeRows(data, at).forEach((row) => rows.add(row));
    case 'RunCompleted':
      return rows.endNodes(at.workspace, data.runId, data.completedAt);
    case 'RunFailed':
      return rows.endNodes(at.workspace, data.runId, data.failedAt);
    case 'RunCancelled':
      return rows.endNodes(at.workspace, data.runId, data.cancelledAt);
    default:
      if ('nodeId' in data)
        rows.change(at.workspace, `${data.runId}/${data.nodeId}`, (row) => applyNodeEvent(row, event));
  }
};

/** An event with its parsed form. */
type Parsed = readonly [at: RecordedEvent, task: TaskEvent | null, run: RunEvent | null];

const parse = (at: RecordedEvent): Parsed => {
  const event = upcast(at);
  return at.category === 'run' ? [at, null, RunEvent.parse(event)] : [at, TaskEvent.parse(event), null];
};

/** Returns the ids of a task, or those of the nodes of a run: '0' is the character after '/'. */
const rangeOf = ([{ workspace }, task, run]: Parsed): TaskRange =>
  task === null
    ? { workspace, first: `${run?.data.runId}/`, last: `${run?.data.runId}0` }
    : { workspace, first: task.data.taskId, last: task.data.taskId };

/** Projects tasks of the queue and nodes of runs to `agent_tasks`, with two statements for a batch. */
export const projectTasks = async (
  client: pg.ClientBase,
  events: readonly RecordedEvent[],
): Promise<void> => {
  const parsed = events.map(parse);
  const ranges = new Map(parsed.map(rangeOf).map((range) => [keyOf(range.workspace, range.first), range]));
  if (ranges.size === 0) return;
  const rows = new TaskRows(await loadTasks(client, [...ranges.values()]));
  for (const [at, task, run] of parsed) {
    if (task !== null) applyTaskEvent(rows, task, at);
    if (run !== null) applyRunEvent(rows, run, at);
  }
  await saveTasks(client, rows.changed());
};

/** Rows of tasks of the queue and of nodes of runs, for lists and the start of the delegation. */
export const agentTasks: ProjectionDefinition = {
  name: 'agent-tasks',
  service: 'agent',
  categories: ['task', 'run'],
  tables: [{ name: 'agent_tasks' }],
  handle: projectTasks,
};
