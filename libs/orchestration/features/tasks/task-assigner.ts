import type pg from 'pg';
import type { Fence } from '@antiphon/event-store';
import { createBoundedMap, failpoint, isAppError } from '@antiphon/kernel';
import { matchTasks } from './assign-tasks.js';
import type { Assignment } from './assign-tasks.js';
import type { DelegationTimes } from './delegation.js';
import type { OpenTasks } from './open-tasks.js';
import type { TaskAgents } from './task-agents.js';
import type { OpenTask } from './task-queues.js';
import type { TaskStreams } from './task-streams.js';

export interface TaskAssignerDeps {
  readonly pool: pg.Pool;
  readonly agents: TaskAgents;
  readonly open: OpenTasks;
  readonly tasks: TaskStreams;
  readonly times: Pick<DelegationTimes, 'maxRunning'>;
}

const MAX_ASSIGNED = 10_000;

/** Claims waiting tasks for idle agents. */
export class TaskAssigner {
  /** Epochs of the claims that this process made, by task. */
  private readonly assigned = createBoundedMap<number>(MAX_ASSIGNED);

  constructor(private readonly deps: TaskAssignerDeps) {}

  /** Returns true if this process made the claim under which a task runs. */
  hasAssigned({ taskId, state }: OpenTask): boolean {
    return this.assigned.get(taskId) === state.epoch;
  }

  async assign(fence: Fence): Promise<void> {
    const { pool, agents, open, times } = this.deps;
    const used = open.queues.claimed().filter(({ state }) => state.agentId !== null).length;
    const slots = times.maxRunning - used;
    const matched = await matchTasks({ pool, agents, queues: open.queues }, slots);
    await Promise.all(matched.map((assignment) => this.claim(assignment, fence)));
  }

  /** Appends the claim of an agent. A task that another process has changed is read again. */
  private async claim({ task, agentId, stolen }: Assignment, fence: Fence): Promise<void> {
    const { tasks, open } = this.deps;
    const { workspace, taskId } = task;
    const data = { epoch: task.state.epoch + 1, worker: `agent/${agentId}`, agentId, stolen };
    try {
      const { state, version } = await tasks.commit(
        workspace,
        taskId,
        (_, now) => ({ type: 'AssignTask', data, now }),
        { known: task, fence },
      );
      await failpoint('agent.task.assigned');
      this.assigned.put(taskId, data.epoch);
      open.put({ workspace, taskId, state, version });
    } catch (error) {
      // The next round has the task again, in the state that the log has by then.
      open.queues.delay(taskId, 0);
      if (!isAppError(error) || error.code !== 'TASK.CLAIMED') throw error;
      await open.catchUp();
    }
  }
}
