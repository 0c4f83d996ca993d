import type pg from 'pg';
import { TaskEvent, taskStream } from '@antiphon/contracts/agent';
import { upcast } from '@antiphon/contracts/events';
import { taskDecider } from '@antiphon/orchestration-domain';
import { acrossWorkspaces, translateDatabaseError } from '@antiphon/database';
import { isPageFull, pageSql } from '@antiphon/event-store';
import type { EventStore, PagedRow } from '@antiphon/event-store';
import { createCoalescer } from '@antiphon/kernel';
import type { Clock } from '@antiphon/kernel';
import { TaskQueues } from './task-queues.js';
import type { OpenTask } from './task-queues.js';
import { createToken } from '@antiphon/service-host';

/** Events and positions of one read, which is bounded in bytes too. */
const PAGE = 500;
const MAX_RANGE = 20_000;
/** Streams that one read of the start folds. */
const STREAMS = 64;

// Prompts stay in the log: this process holds every open task.
const WITHOUT_PROMPTS = `(select position, workspace, category, stream_id, stream_version, event_id, type, schema_version,
  data - 'prompt' as data, metadata, recorded_at, hash from events) events`;
const AFTER_SQL = pageSql(
  `where position > $1 and position <= $2 and category = 'task' order by position limit ${PAGE}`,
  'position',
  undefined,
  WITHOUT_PROMPTS,
);
const STREAMS_SQL = pageSql(
  `where position > $1 and workspace = any ($2) and stream_id = any ($3) order by position limit ${PAGE}`,
  'position',
  undefined,
  WITHOUT_PROMPTS,
);
const CHECKPOINT_SQL = `select position from projection_checkpoints where name = 'agent-tasks'`;
const OPEN_SQL = `select workspace, id from agent_tasks where ended_at is null and kind = 'task' order by first_position`;

/** Maximum number of open tasks of a workspace. */
export const MAX_OPEN_TASKS = createToken<number>('MAX_OPEN_TASKS');

export interface OpenTasksDeps {
  readonly pool: pg.Pool;
  readonly store: Pick<EventStore, 'headPosition'>;
  readonly clock: Clock;
}

/**
 * Every open task, folded from the log in this process. A claim decides on this fold, and the
 * version of the task's event stream protects it from a fold that is out of date.
 */
export class OpenTasks {
  readonly queues = new TaskQueues();
  private position = -1;
  private readonly read = createCoalescer(() => this.follow());

  constructor(private readonly deps: OpenTasksDeps) {}

  /** Applies every event that the log had at the time of the call. */
  catchUp(): Promise<void> {
    return this.read('log');
  }

  /** Records the state of a task that this process has just read or appended. */
  put(task: OpenTask): void {
    const known = this.queues.get(task.taskId);
    if (known && known.version > task.version) return;
    this.queues.put(task, this.deps.clock.now());
  }

  private async follow(): Promise<void> {
    if (this.position < 0) await this.load();
    const head = await this.deps.store.headPosition();
    while (this.position < head) {
      const upTo = Math.min(head, this.position + MAX_RANGE);
      const rows = await this.query<PagedRow>('agent_tasks_after', AFTER_SQL, [this.position, upTo]);
      for (const row of rows) this.apply(row);
      this.position = isPageFull(rows, { limit: PAGE }) ? Number(rows.at(-1)?.position) : upTo;
    }
  }

  /** Folds the open tasks of the projection. Later events are applied after its checkpoint. */
  private async load(): Promise<void> {
    const [checkpoint] = await this.query<{ position: string }>('agent_tasks_mark', CHECKPOINT_SQL, []);
    const open = await this.query<{ workspace: string; id: string }>('agent_tasks_open', OPEN_SQL, []);
    for (let first = 0; first < open.length; first += STREAMS) {
      const some = open.slice(first, first + STREAMS);
      const workspaces = [...new Set(some.map(({ workspace }) => workspace))];
      await this.loadStreams([workspaces, some.map(({ id }) => taskStream(id))]);
    }
    this.position = Number(checkpoint?.position ?? 0);
  }

  private async loadStreams(streams: readonly [workspaces: string[], streamIds: string[]]): Promise<void> {
    for (let after = 0, hasMore = true; hasMore;) {
      const rows = await this.query<PagedRow>('agent_tasks_streams', STREAMS_SQL, [after, ...streams]);
      for (const row of rows) this.apply(row);
      after = Number(rows.at(-1)?.position ?? 0);
      hasMore = isPageFull(rows, { limit: PAGE });
    }
  }

  /** Applies an event once: events of the start are read again after the checkpoint. */
  private apply(row: PagedRow): void {
    const version = Number(row.stream_version);
    const taskId = row.stream_id.slice('task-'.length);
    const known = this.queues.get(taskId);
    if (known ? known.version >= version : row.type !== 'TaskQueued') return;
    const form = { type: row.type, schemaVersion: row.schema_version, data: { prompt: '', ...row.data } };
    const parsed = TaskEvent.safeParse(upcast(form));
    // An event of a newer version: this process does not claim the task.
    if (!parsed.success) return;
    const state = taskDecider.evolve(known?.state ?? taskDecider.initialState(), parsed.data);
    this.queues.put({ workspace: row.workspace, taskId, state, version }, this.deps.clock.now());
  }

  private async query<T extends pg.QueryResultRow>(
    name: string,
    text: string,
    values: unknown[],
  ): Promise<T[]> {
    try {
      return (await acrossWorkspaces(this.deps.pool).query<T>({ name, text, values })).rows;
    } catch (error) {
      throw translateDatabaseError(error);
    }
  }
}
