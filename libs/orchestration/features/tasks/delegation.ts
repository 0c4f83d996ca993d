import type { Fence } from '@antiphon/event-store';
import type { Clock } from '@antiphon/kernel';
import type { LeaderLoop } from '@antiphon/messaging';
import { observeGauges } from '@antiphon/observability';
import type { OpenTasks } from './open-tasks.js';
import type { RunningTasks } from './running-tasks.js';
import type { TaskAssigner } from './task-assigner.js';
import type { TaskUpkeep } from './task-upkeep.js';

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

export interface DelegationDeps {
  readonly loop: LeaderLoop;
  readonly open: OpenTasks;
  readonly upkeep: TaskUpkeep;
  readonly assigner: TaskAssigner;
  readonly running: RunningTasks;
  readonly clock: Clock;
  readonly times: DelegationTimes;
}

/**
 * Assigns waiting tasks to idle agents and follows their turns to the end. One process does so at a
 * time. All that it knows is in the log, so that another process takes over where it stopped.
 */
export class Delegation {
  private upkeepAt = 0;

  constructor(private readonly deps: DelegationDeps) {}

  isLeader(): boolean {
    return this.deps.loop.isLeader();
  }

  /** Assigns tasks until the signal aborts, then releases the lease. */
  async run(signal: AbortSignal): Promise<void> {
    const { loop, running } = this.deps;
    const stopObserving = this.observeQueue();
    await loop.run(signal, {
      round: (fence) => this.round(fence),
      endTerm: () => running.endTerm(),
      stop: async () => {
        await running.release();
        stopObserving();
      },
    });
  }

  private async round(fence: Fence): Promise<number> {
    const { open, upkeep, assigner, running, clock, times } = this.deps;
    await open.catchUp();
    const nextDue = open.queues.releaseDue(clock.now());
    if (performance.now() >= this.upkeepAt) {
      this.upkeepAt = performance.now() + times.upkeepMs;
      await upkeep.run(fence);
    }
    await assigner.assign(fence);
    running.startClaimed(fence);
    return Math.max(1, Math.min(times.pollMs, nextDue - clock.now()));
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
