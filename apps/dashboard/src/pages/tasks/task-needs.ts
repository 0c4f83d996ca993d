import { textOfTaskWait } from '@antiphon/contracts/task-waits';
import type { Task } from './task-row.js';

/** Reason for which a task needs a person, and the page where the person can act. */
export interface TaskNeed {
  readonly reason: 'approval' | 'no_agent' | 'failed';
  readonly text: string;
  readonly to: string;
  readonly action: string;
}

const RANKS = { approval: 0, no_agent: 1, failed: 2 } as const;

/**
 * Returns why a task needs a person; null for one that does not. `approvals` has the id of the
 * pending approval of a session.
 */
export const needOf = (task: Task, approvals: ReadonlyMap<string, string>): TaskNeed | null => {
  const { id, state, sessionId, endedAt, waiting, strikes } = task;
  const approval = sessionId !== null && endedAt === null ? approvals.get(sessionId) : undefined;
  if (approval !== undefined)
    return {
      ...{ reason: 'approval', text: 'waits for approval' },
      ...{ to: `/approvals?id=${approval}`, action: 'Decide' },
    };
  if (waiting?.reason === 'no_agent')
    return {
      ...{ reason: 'no_agent', text: textOfTaskWait(waiting), action: 'Spawn an agent' },
      to: `/agents?spawn=1&can=${encodeURIComponent(waiting.missing.join(','))}`,
    };
  if (state !== 'failed' || task.retriedBy) return null;
  return {
    ...{ reason: 'failed', text: strikes.at(-1) ?? task.result?.code ?? 'failed' },
    ...{ to: `/tasks/${id}`, action: 'Look at it' },
  };
};

/** A task that needs a person, and why. */
export interface NeedyTask {
  readonly task: Task;
  readonly need: TaskNeed;
}

/** Returns the tasks that need a person: first those that wait for it, then those that failed. */
export const needyTasks = (
  tasks: Iterable<Task>,
  approvals: ReadonlyMap<string, string>,
): readonly NeedyTask[] => {
  const needy = [...new Map([...tasks].map((task) => [task.id, task])).values()].flatMap((task) => {
    const need = needOf(task, approvals);
    return need ? [{ task, need }] : [];
  });
  return needy.toSorted(
    (a, b) => RANKS[a.need.reason] - RANKS[b.need.reason] || b.task.queuedAt.localeCompare(a.task.queuedAt),
  );
};
