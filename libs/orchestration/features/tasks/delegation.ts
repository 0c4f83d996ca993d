import { WorkTrials, createWorkStarts } from '@antiphon/database';
import type { Fence } from '@antiphon/event-store';
import { createBoundedMap, failpoint, isAppError } from '@antiphon/kernel';
import { Leadership } from '@antiphon/messaging';
import { observeGauges } from '@antiphon/observability';
import type { TurnLeaderDeps } from '@antiphon/conversation-features';
import { matchTasks } from './assign-tasks.js';
import type { Assignment } from './assign-tasks.js';
import type { OpenTasks } from './open-tasks.js';
import type { TaskAgents } from './task-agents.js';
import type { TaskChanges } from './task-changes.js';
import type { OpenTask } from './task-queues.js';
import { AgentTaskRunner } from './task-runner.js';
import type { TaskStreams } from './task-streams.js';
import { TaskUpkeep } from './task-upkeep.js';

/** Lease of the process that assigns tasks. */
export const DELEGATION_LEASE = 'delegation';

/** Times and limits of the delegation, ms. */
export interface DelegationTimes {
  /** Life of the leader's lease: another process takes over after it. */
  readonly leaseMs: number;
  /** Time between two rounds without a notification. */
  readonly pollMs: number;
  /** Time between two looks at deadlines, lost workers and terminated agents. */
  readonly upkeepMs: number;
  /** Delay before the next try to do a task after an error of a dependency. */
  readonly retryMs: number;
  /** Maximum number of tasks that agents do at the same time. */
  readonly maxRunning: number;
}

export const defaultDelegationTimes: DelegationTimes = {
  leaseMs: 4_000,
  pollMs: 500,
  upkeepMs: 500,
  retryMs: 1_000,
  maxRunning: 256,
};

export interface DelegationDeps extends TurnLeaderDeps {
  readonly tasks: TaskStreams;
  readonly open: OpenTasks;
  readonly agents: TaskAgents;
  readonly changes: Pick<TaskChanges, 'signal'>;
  readonly times: DelegationTimes;
}

/** Kind of the counted starts of tasks. */
const TASK = 'task';
const MAX_ASSIGNED = 10_000;

/** A task that this process waits for. */
interface Running {
  readonly epoch: number;
  isCancelSent: boolean;
}

/**
 * Assigns waiting tasks to idle agents and follows their turns to the end. One process does so at a
 * time. All that it knows is in the log, so that another process takes over where it stopped.
 */
export class Delegation {
  private readonly times: DelegationTimes;
  private readonly leadership: Leadership;
  private readonly runner: AgentTaskRunner;
  private readonly upkeep: TaskUpkeep;
  private readonly running = new Map<string, Running>();
  private readonly retryAt = new Map<string, number>();
  /** Epochs of the claims that this process made, by task. */
  private readonly assigned = createBoundedMap<number>(MAX_ASSIGNED);
  private readonly trials: WorkTrials;
  /** Aborted when this process stops to lead. */
  private term = new AbortController();
  private upkeepAt = 0;
  private isFailing = false;

  constructor(private readonly deps: DelegationDeps) {
    const { leases, owner, logger } = deps;
    this.times = deps.times;
    this.leadership = new Leadership({
      ...{ leases, owner, logger, name: DELEGATION_LEASE },
      leaseMs: this.times.leaseMs,
    });
    this.runner = new AgentTaskRunner(deps);
    this.upkeep = new TaskUpkeep(deps);
    this.trials = new WorkTrials(createWorkStarts(deps.pool), { countsFirst: false });
  }

  private wake(): void {
    this.deps.changes.signal.wake();
  }

  isLeader(): boolean {
    return this.leadership.isLeader();
  }

  /** Assigns tasks until the signal aborts, then releases the lease. */
  async run(signal: AbortSignal): Promise<void> {
    const stopObserving = this.observeQueue();
    signal.addEventListener('abort', () => this.wake(), { once: true });
    while (!signal.aborted) {
      const waitMs = await this.tryRound();
      if (!signal.aborted) await this.deps.changes.signal.wait(waitMs);
    }
    await this.trials
      .release()
      .catch((err: unknown) => this.deps.logger.warn({ work: 'task', err }, 'work not released'));
    this.endTerm();
    stopObserving();
    await this.leadership.release().catch((error: unknown) => {
      this.deps.logger.warn({ err: error }, 'delegation lease not released');
    });
  }

  /** Returns the time until the next round, ms. */
  private async tryRound(): Promise<number> {
    try {
      const waitMs = await this.round();
      this.isFailing = false;
      return waitMs;
    } catch (error) {
      if (!this.isFailing) this.deps.logger.warn({ err: error }, 'task delegation failed');
      this.isFailing = true;
      return this.times.retryMs;
    }
  }

  private async round(): Promise<number> {
    const { leadership, times } = this;
    if (!leadership.isLeader()) this.endTerm();
    const fence = leadership.fence() ?? ((await leadership.campaign()) ? leadership.fence() : null);
    if (!fence) return times.pollMs;
    const { open, clock } = this.deps;
    await open.catchUp();
    const nextDue = open.queues.releaseDue(clock.now());
    if (performance.now() >= this.upkeepAt) {
      this.upkeepAt = performance.now() + times.upkeepMs;
      await this.upkeep.run(fence);
    }
    await this.assign(fence);
    this.startRunners(fence);
    return Math.max(1, Math.min(times.pollMs, nextDue - clock.now()));
  }

  private async assign(fence: Fence): Promise<void> {
    const { pool, agents, open } = this.deps;
    const used = open.queues.claimed().filter(({ state }) => state.agentId !== null).length;
    const slots = this.times.maxRunning - used;
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

  private startRunners(fence: Fence): void {
    for (const task of this.deps.open.queues.claimed()) {
      if (task.state.agentId === null) continue;
      const running = this.running.get(task.taskId);
      if (running?.epoch !== task.state.epoch) this.startRunner(task, fence);
      else if (task.state.cancelRequest && !running.isCancelSent) this.sendCancel(task, running);
    }
  }

  private startRunner(task: OpenTask, fence: Fence): void {
    const { taskId, state } = task;
    if ((this.retryAt.get(taskId) ?? 0) > performance.now()) return;
    this.retryAt.delete(taskId);
    const running: Running = { epoch: state.epoch, isCancelSent: false };
    this.running.set(taskId, running);
    const { signal } = this.term;
    void this.runTask(task, fence, signal)
      .catch((error: unknown) => {
        if (signal.aborted) return;
        this.retryAt.set(taskId, performance.now() + this.times.retryMs);
        this.deps.logger.warn({ err: error, taskId }, 'task attempt interrupted');
      })
      .finally(() => {
        if (this.running.get(taskId) === running) this.running.delete(taskId);
        this.wake();
      });
  }

  /** Does a task. One that this process has not assigned itself may have ended another process. */
  private async runTask(task: OpenTask, fence: Fence, signal: AbortSignal): Promise<void> {
    const { taskId, state } = task;
    const begin = async (onTurn: () => Promise<void>): Promise<void> => {
      await failpoint('work.task.begun', () => `${task.workspace} ${taskId} ${state.agentId ?? ''}`);
      await this.runner.run(task, fence, signal, onTurn);
    };
    const item = `${taskId}/${state.epoch}`;
    if (this.assigned.get(taskId) === state.epoch) return this.trials.runFirst(TASK, item, begin);
    return this.trials.run(TASK, item, begin).catch((error: unknown) => {
      if (!isAppError(error) || error.code !== 'WORK.PROCESS_LOST') throw error;
      return this.runner.fail(task, error, fence);
    });
  }

  private sendCancel(task: OpenTask, running: Running): void {
    if (task.state.turnId === null) return;
    running.isCancelSent = true;
    this.runner.cancel(task).catch((error: unknown) => {
      running.isCancelSent = false;
      this.deps.logger.warn({ err: error, taskId: task.taskId }, 'task turn cancellation failed');
    });
  }

  private endTerm(): void {
    if (this.running.size === 0) return;
    this.term.abort(new Error('this process no longer assigns tasks'));
    this.term = new AbortController();
    this.running.clear();
    this.retryAt.clear();
  }

  private observeQueue(): () => void {
    return observeGauges(
      { antiphon_tasks_open: 'Open tasks of the queue by state, from the process that assigns them' },
      (report) => {
        if (!this.isLeader()) return;
        const counts = { queued: 0, assigned: 0, running: 0 };
        for (const { state } of this.deps.open.queues.all())
          if (state.status in counts) counts[state.status as keyof typeof counts]++;
        for (const [state, count] of Object.entries(counts)) report('antiphon_tasks_open', count, { state });
      },
    );
  }
}
