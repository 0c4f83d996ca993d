import type { WorkTrials } from '@antiphon/database';
import type { Fence } from '@antiphon/event-store';
import { failpoint, isAppError } from '@antiphon/kernel';
import type { Logger } from '@antiphon/observability';
import type { DelegationTimes } from './delegation.js';
import type { OpenTasks } from './open-tasks.js';
import type { TaskAssigner } from './task-assigner.js';
import type { TaskChanges } from './task-changes.js';
import type { OpenTask } from './task-queues.js';
import type { AgentTaskRunner } from './task-runner.js';

export interface RunningTasksDeps {
  readonly open: OpenTasks;
  readonly runner: AgentTaskRunner;
  readonly assigner: Pick<TaskAssigner, 'hasAssigned'>;
  readonly trials: WorkTrials;
  readonly changes: Pick<TaskChanges, 'signal'>;
  readonly logger: Logger;
  readonly times: Pick<DelegationTimes, 'retryMs'>;
}

/** Kind of the counted starts of tasks. */
const TASK = 'task';

/** A task that this process waits for. */
interface Running {
  readonly epoch: number;
  isCancelSent: boolean;
}

/** Follows the claimed tasks of agents to their end, in the process that assigns tasks. */
export class RunningTasks {
  private readonly running = new Map<string, Running>();
  private readonly retryAt = new Map<string, number>();
  /** Aborted when this process stops to lead. */
  private term = new AbortController();

  constructor(private readonly deps: RunningTasksDeps) {}

  /** Starts the claimed tasks that do not run here, and sends requested cancels. */
  startClaimed(fence: Fence): void {
    for (const task of this.deps.open.queues.claimed()) {
      if (task.state.agentId === null) continue;
      const running = this.running.get(task.taskId);
      if (running?.epoch !== task.state.epoch) this.start(task, fence);
      else if (task.state.cancelRequest && !running.isCancelSent) this.sendCancel(task, running);
    }
  }

  /** Leaves the tasks to the next leader. Their turns continue. */
  endTerm(): void {
    if (this.running.size === 0) return;
    this.term.abort(new Error('this process no longer assigns tasks'));
    this.term = new AbortController();
    this.running.clear();
    this.retryAt.clear();
  }

  /** Leaves the tasks, for a process that stops in order. */
  async release(): Promise<void> {
    const { trials, logger } = this.deps;
    await trials.release().catch((err: unknown) => logger.warn({ work: 'task', err }, 'work not released'));
    this.endTerm();
  }

  private start(task: OpenTask, fence: Fence): void {
    const { taskId, state } = task;
    if ((this.retryAt.get(taskId) ?? 0) > performance.now()) return;
    this.retryAt.delete(taskId);
    const running: Running = { epoch: state.epoch, isCancelSent: false };
    this.running.set(taskId, running);
    const { signal } = this.term;
    void this.run(task, fence, signal)
      .catch((error: unknown) => {
        if (signal.aborted) return;
        this.retryAt.set(taskId, performance.now() + this.deps.times.retryMs);
        this.deps.logger.warn({ err: error, taskId }, 'task attempt interrupted');
      })
      .finally(() => {
        if (this.running.get(taskId) === running) this.running.delete(taskId);
        this.deps.changes.signal.wake();
      });
  }

  /** Does a task. One that this process has not assigned itself may have ended another process. */
  private async run(task: OpenTask, fence: Fence, signal: AbortSignal): Promise<void> {
    const { runner, assigner, trials } = this.deps;
    const { taskId, state } = task;
    const begin = async (onTurn: () => Promise<void>): Promise<void> => {
      await failpoint('work.task.begun', () => `${task.workspace} ${taskId} ${state.agentId ?? ''}`);
      await runner.run(task, fence, signal, onTurn);
    };
    const item = `${taskId}/${state.epoch}`;
    if (assigner.hasAssigned(task)) return trials.runFirst(TASK, item, begin);
    return trials.run(TASK, item, begin).catch((error: unknown) => {
      if (!isAppError(error) || error.code !== 'WORK.PROCESS_LOST') throw error;
      return runner.fail(task, error, fence);
    });
  }

  private sendCancel(task: OpenTask, running: Running): void {
    if (task.state.turnId === null) return;
    running.isCancelSent = true;
    this.deps.runner.cancel(task).catch((error: unknown) => {
      running.isCancelSent = false;
      this.deps.logger.warn({ err: error, taskId: task.taskId }, 'task turn cancellation failed');
    });
  }
}
