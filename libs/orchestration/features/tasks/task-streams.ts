import type { Cause } from '@antiphon/contracts/causes';
import { TaskEvent, taskStream } from '@antiphon/contracts/agent';
import { failureDelayMs, lossDelayMs, taskDecider } from '@antiphon/orchestration-domain';
import type { TaskCommand, TaskFold } from '@antiphon/orchestration-domain';
import { AggregateStore } from '@antiphon/event-store';
import type {
  Committed,
  EventStore,
  Fence,
  Folded,
  IdempotencyClaim,
  NewEvent,
  StreamAppend,
} from '@antiphon/event-store';
import { clipText, isAppError, isoTime } from '@antiphon/kernel';
import type { Clock, Ids } from '@antiphon/kernel';
import { defineCounter } from '@antiphon/observability';
import { taskEndedAppend } from '@antiphon/agents-features';
import { eventForms } from '@antiphon/agent-log';

/** Maximum length of a result's text, UTF-16 units. */
const MAX_TEXT = 65_536;

const endedTasks = defineCounter('antiphon_tasks_ended', 'Tasks that ended in this process, by status');

export interface TaskStreamsDeps {
  readonly store: EventStore;
  readonly ids: Ids;
  readonly clock: Clock;
}

export type TaskKnown = Pick<Folded<TaskFold>, 'state' | 'version'>;

/** Outcome of an attempt, as the worker reports it. */
export interface AttemptOutcome {
  readonly outcome: 'completed' | 'failed' | 'released' | 'cancelled';
  readonly text?: string;
  readonly code?: string | null;
  readonly cause?: Cause | null;
  readonly isRetryable?: boolean;
}

interface CommitOptions {
  readonly known?: TaskKnown | undefined;
  readonly fence?: Fence | undefined;
  readonly idempotency?: IdempotencyClaim | undefined;
}

/** Returns what was read; null if the task's events were archived, which only ended tasks' are. */
export const readIfKept = async <T>(read: Promise<T>): Promise<T | null> => {
  try {
    return await read;
  } catch (error) {
    if (isAppError(error) && error.code === 'LOG.ARCHIVED') return null;
    throw error;
  }
};

/** Decides a command, or several: each applies to the state after the one before it. */
type Decide = (state: TaskFold, now: string) => TaskCommand | readonly TaskCommand[];

/** Event streams of tasks. Every change of a task goes through here. */
export class TaskStreams {
  private readonly streams: AggregateStore<TaskFold, TaskEvent>;

  constructor(
    private readonly deps: TaskStreamsDeps,
    /** Called after each append. */
    private readonly onAppended: () => void,
  ) {
    const { store, ids } = deps;
    this.streams = new AggregateStore({
      ...{ store, decider: taskDecider, ...eventForms(TaskEvent, ids, 'WORKFLOW.EVENT_UNKNOWN') },
      streamOf: (_workspace, id) => taskStream(id),
    });
  }

  read(workspace: string, taskId: string, upTo?: number): Promise<Folded<TaskFold>> {
    return this.streams.read(workspace, taskId, upTo);
  }

  /** Decides and appends; decides again after a version conflict. */
  async commit(
    workspace: string,
    taskId: string,
    decide: Decide,
    { known, fence, idempotency }: CommitOptions = {},
  ): Promise<Committed<TaskFold> & { readonly events: readonly TaskEvent[] }> {
    let events: readonly TaskEvent[] = [];
    const committed = await this.streams.commit(
      workspace,
      taskId,
      ({ state }) => {
        events = this.decideAll(decide, state);
        const also = (stored: readonly NewEvent[]): StreamAppend[] =>
          endAppends(workspace, state, events, stored);
        return { events, also, fence, idempotency };
      },
      known,
    );
    if (events.length > 0) this.onAppended();
    for (const event of events)
      if (event.type === 'TaskEnded') endedTasks.add(1, { status: event.data.status });
    return { ...committed, events };
  }

  /** Records the outcome of an attempt. A result of an older claim stays as evidence. */
  finish(
    workspace: string,
    taskId: string,
    claim: { readonly epoch: number; readonly worker: string },
    { outcome, text = '', code = null, cause = null, isRetryable = true }: AttemptOutcome,
    options: CommitOptions = {},
  ) {
    const decide: Decide = (state, now) => {
      const notBefore = this.later(failureDelayMs(state));
      const result = { outcome, text: clipText(text, MAX_TEXT), code, cause, isRetryable, notBefore };
      return { type: 'FinishTask', data: { ...claim, ...result }, now };
    };
    return this.commit(workspace, taskId, decide, options);
  }

  /** Returns a task to the queue whose worker is gone. */
  lose(
    workspace: string,
    taskId: string,
    claim: { epoch: number; code: string },
    options: CommitOptions = {},
  ) {
    const decide: Decide = (state, now) => {
      const notBefore = this.later(lossDelayMs(state));
      return { type: 'LoseTask', data: { ...claim, notBefore }, now };
    };
    return this.commit(workspace, taskId, decide, options);
  }

  private decideAll(decide: Decide, before: TaskFold): TaskEvent[] {
    const commands = decide(before, isoTime(this.deps.clock));
    const events: TaskEvent[] = [];
    let state = before;
    for (const command of [commands].flat() as TaskCommand[]) {
      const decided = taskDecider.decide(command, state);
      state = decided.reduce(taskDecider.evolve, state);
      events.push(...decided);
    }
    return events;
  }

  private later(ms: number): string {
    return isoTime({ now: () => this.deps.clock.now() + ms });
  }
}

/** Returns the append that tells the agent that delegated a task of its end, if there is one. */
const endAppends = (
  workspace: string,
  { queued }: TaskFold,
  events: readonly TaskEvent[],
  stored: readonly NewEvent[],
): StreamAppend[] => {
  const end = events.find((event) => event.type === 'TaskEnded');
  const parentId = queued?.parentAgentId ?? null;
  if (!end || parentId === null) return [];
  const causeId = stored.find(({ type }) => type === 'TaskEnded')?.eventId ?? '';
  const { taskId, result, at } = end.data;
  return [taskEndedAppend({ workspace, parentId, taskId, result, causeId, at })];
};
