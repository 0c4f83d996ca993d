import {
  SessionStarted,
  TaskQueued,
  sessionStream,
  taskOfSessionKey,
  taskStream,
} from '@antiphon/contracts/agent';
import { upcast } from '@antiphon/contracts/events';
import type { TaskLimits } from '@antiphon/contracts/metering';
import type { OpenTurn, SessionState } from '@antiphon/conversation-domain';
import type { EventStore } from '@antiphon/event-store';
import { createBoundedMap } from '@antiphon/kernel';
import { readIfKept } from './task-streams.js';

/** Maximum number of tasks and sessions whose first event is cached. Neither ever changes. */
const MAX_CACHED = 5_000;
/** Maximum number of tasks above a task. */
const MAX_DEPTH = 32;

/** Budget and parent of a task, as it was accepted. */
interface TaskOrigin {
  readonly limits: TaskLimits | null;
  readonly parentTaskId: string | null;
}

/** A turn, by what led to it and by the key of its session. */
export interface TurnOrigin {
  readonly chain: OpenTurn['chain'];
  readonly sessionKey: string;
}

/** Returns the task that a turn is part of; null for none. */
export type TaskOf = (workspace: string, turn: TurnOrigin) => Promise<string | null>;

/**
 * Finds the task of a turn. It is the task that its session does, or that of the turn that asked
 * for it, through any number of agents.
 */
export const createTaskOf = (store: Pick<EventStore, 'readStream'>): TaskOf => {
  const keys = createBoundedMap<string>(MAX_CACHED);
  const readKey = async (workspace: string, sessionId: string): Promise<string> => {
    const name = `${workspace} ${sessionId}`;
    const known = keys.get(name);
    if (known !== undefined) return known;
    const [first] = await store.readStream(workspace, sessionStream(sessionId), { limit: 1 });
    const started = first && SessionStarted.safeParse(upcast(first));
    const sessionKey = started?.success ? started.data.data.sessionKey : '';
    keys.put(name, sessionKey);
    return sessionKey;
  };
  return async (workspace, { chain: [first], sessionKey }) =>
    taskOfSessionKey(first ? await readKey(workspace, first.sessionId) : sessionKey);
};

/**
 * Returns the budgets of the open turn's task and of the tasks above it, innermost first. A turn of
 * no task costs no read.
 */
export const createTaskBudgets = (
  store: Pick<EventStore, 'readStream'>,
  taskOf: TaskOf = createTaskOf(store),
): ((workspace: string, state: SessionState) => Promise<TaskLimits[]>) => {
  const origins = createBoundedMap<TaskOrigin>(MAX_CACHED);
  const readOrigin = async (workspace: string, taskId: string): Promise<TaskOrigin> => {
    const name = `${workspace} ${taskId}`;
    const known = origins.get(name);
    if (known) return known;
    // The events of a task stay in the log while a task below it is open.
    const [first] = (await readIfKept(store.readStream(workspace, taskStream(taskId), { limit: 1 }))) ?? [];
    const queued = first && TaskQueued.safeParse(upcast(first));
    // A client may name a task that does not exist: there is nothing to limit, or to remember.
    if (!queued?.success) return { limits: null, parentTaskId: null };
    const { budget, parentTaskId } = queued.data.data;
    const limits = budget && { taskId, limitTokens: budget.tokens, limitMicroUsd: budget.microUsd };
    const origin = { limits, parentTaskId };
    origins.put(name, origin);
    return origin;
  };
  return async (workspace, { open, started }) => {
    const limits: TaskLimits[] = [];
    const seen = new Set<string>();
    const turn = { chain: open?.chain ?? [], sessionKey: started?.sessionKey ?? '' };
    let taskId = await taskOf(workspace, turn);
    while (taskId !== null && !seen.has(taskId) && seen.size < MAX_DEPTH) {
      seen.add(taskId);
      const origin = await readOrigin(workspace, taskId);
      if (origin.limits) limits.push(origin.limits);
      taskId = origin.parentTaskId;
    }
    return limits;
  };
};
