import type pg from 'pg';
import { TaskEvent, taskStream } from '@antiphon/contracts/agent';
import { upcast } from '@antiphon/contracts/events';
import { taskDecider } from '@antiphon/agent-domain';
import { acrossWorkspaces, translateDatabaseError } from '@antiphon/database';
import type { EventStore } from '@antiphon/event-store';
import { createCoalescer } from '@antiphon/kernel';
import type { Clock, JsonObject } from '@antiphon/kernel';
import { TaskQueues } from './task-queues.js';
import type { OpenTask } from './task-queues.js';

/** Maximum number of events in one read, of up to 1 MiB each, and of positions that it covers. */
const PAGE = 64;
const MAX_RANGE = 20_000;
/** Streams that one read of the start folds. */
const STREAMS = 64;

interface Row {
  readonly position: string;
  readonly workspace: string;
  readonly stream_id: string;
  readonly stream_version: string;
  readonly type: string;
  readonly schema_version: number;
  readonly data: JsonObject;
}

// Prompts stay in the log: this process holds every open task.
const COLUMNS = `position, workspace, stream_id, stream_version, type, schema_version, data - 'prompt' as data`;
const AFTER_SQL = `select ${COLUMNS} from events
  where position > $1 and position <= $2 and category = 'task' order by position limit ${PAGE}`;
const STREAMS_SQL = `select ${COLUMNS} from events
  where workspace = any ($1) and stream_id = any ($2) order by position`;
const CHECKPOINT_SQL = `select position from projection_checkpoints where name = 'agent-tasks'`;
const OPEN_SQL = `select workspace, id from agent_tasks where ended_at is null and kind = 'task' order by first_position`;

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
      const rows = await this.query<Row>('agent_tasks_after', AFTER_SQL, [this.position, upTo]);
      for (const row of rows) this.apply(row);
      this.position = rows.length === PAGE ? Number(rows.at(-1)?.position) : upTo;
    }
  }

  /** Folds the open tasks of the projection. Later events are applied after its checkpoint. */
  private async load(): Promise<void> {
    const [checkpoint] = await this.query<{ position: string }>('agent_tasks_mark', CHECKPOINT_SQL, []);
    const open = await this.query<{ workspace: string; id: string }>('agent_tasks_open', OPEN_SQL, []);
    for (let first = 0; first < open.length; first += STREAMS) {
      const some = open.slice(first, first + STREAMS);
      const workspaces = [...new Set(some.map(({ workspace }) => workspace))];
      const values = [workspaces, some.map(({ id }) => taskStream(id))];
      const rows = await this.query<Row>('agent_tasks_streams', STREAMS_SQL, values);
      for (const row of rows) this.apply(row);
    }
    this.position = Number(checkpoint?.position ?? 0);
  }

  /** Applies an event once: events of the start are read again after the checkpoint. */
  private apply(row: Row): void {
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
