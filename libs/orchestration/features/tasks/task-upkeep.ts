import type pg from 'pg';
import { taskLease } from '@antiphon/contracts/agent';
import { acrossWorkspaces, translateDatabaseError } from '@antiphon/database';
import type { Fence, LeaseStore } from '@antiphon/event-store';
import { isoTime } from '@antiphon/kernel';
import type { Clock } from '@antiphon/kernel';
import type { Logger } from '@antiphon/observability';
import type { OpenTasks } from './open-tasks.js';
import type { TaskAgents } from './task-agents.js';
import type { OpenTask } from './task-queues.js';
import type { TaskStreams } from './task-streams.js';

const HELD_SQL = `select workspace, name from leases
  where workspace = any ($1) and name = any ($2) and owner is not null and expires_at > clock_timestamp()`;
/** Life of the lease under which a lost claim is ended, ms. */
const REQUEUE_LEASE_MS = 5_000;

export interface UpkeepDeps {
  readonly pool: pg.Pool;
  readonly leases: LeaseStore;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly owner: string;
  readonly tasks: TaskStreams;
  readonly open: OpenTasks;
  readonly agents: TaskAgents;
}

/** Ends what no event ends: passed deadlines, claims of lost workers, tasks of ended agents. */
export class TaskUpkeep {
  constructor(private readonly deps: UpkeepDeps) {}

  async run(fence: Fence): Promise<void> {
    const all = [...this.deps.open.queues.all()];
    await this.expireDeadlines(all, fence);
    await this.requeueLost(
      all.filter(({ state }) => state.worker !== null && state.agentId === null),
      fence,
    );
    await this.abandonPinned(
      all.filter(({ state }) => state.status === 'queued' && state.queued?.agentId),
      fence,
    );
  }

  private async expireDeadlines(all: readonly OpenTask[], fence: Fence): Promise<void> {
    const now = isoTime(this.deps.clock);
    const due = all.filter(
      ({ state: { queued, cancelRequest } }) =>
        queued !== null && queued.deadline !== null && queued.deadline <= now && !cancelRequest,
    );
    for (const task of due)
      await this.tryEach(task, (workspace, taskId) =>
        this.deps.tasks.commit(workspace, taskId, (_, at) => ({ type: 'ExpireTask', data: {}, now: at }), {
          fence,
        }),
      );
  }

  /** Returns tasks of external workers to the queue whose lease has expired. */
  private async requeueLost(claimed: readonly OpenTask[], fence: Fence): Promise<void> {
    if (claimed.length === 0) return;
    const held = await this.readHeld(claimed);
    const lost = claimed.filter(({ workspace, taskId }) => !held.has(`${workspace} ${taskLease(taskId)}`));
    for (const task of lost)
      await this.tryEach(task, async (workspace, taskId) => {
        const { leases, owner, tasks } = this.deps;
        // The worker may renew its claim until this lease is taken from it.
        const lease = await leases.acquire(
          workspace,
          taskLease(taskId),
          `requeue/${owner}`,
          REQUEUE_LEASE_MS,
        );
        if (!lease.acquired) return null;
        const claim = { epoch: task.state.epoch, code: 'TASK.LEASE_EXPIRED' };
        const committed = await tasks.lose(workspace, taskId, claim, { fence });
        await leases.release(lease.lease);
        return committed;
      });
  }

  private async readHeld(claimed: readonly OpenTask[]): Promise<ReadonlySet<string>> {
    const values = [
      [...new Set(claimed.map(({ workspace }) => workspace))],
      claimed.map(({ taskId }) => taskLease(taskId)),
    ];
    try {
      const query = { name: 'agent_task_leases', text: HELD_SQL, values };
      const { rows } = await acrossWorkspaces(this.deps.pool).query<{ workspace: string; name: string }>(
        query,
      );
      return new Set(rows.map(({ workspace, name }) => `${workspace} ${name}`));
    } catch (error) {
      throw translateDatabaseError(error);
    }
  }

  /** Fails waiting tasks that only an ended agent could do. */
  private async abandonPinned(pinned: readonly OpenTask[], fence: Fence): Promise<void> {
    const living = new Map<string, boolean>();
    for (const task of pinned) {
      const { workspace } = task;
      const agentId = task.state.queued?.agentId ?? '';
      const key = `${workspace}\n${agentId}`;
      const isLiving = living.get(key) ?? (await this.deps.agents.isLiving(workspace, agentId));
      living.set(key, isLiving);
      if (isLiving) continue;
      const cause = { kind: 'agent_terminated', agentId } as const;
      const data = { code: 'AGENT.TERMINATED', cause };
      await this.tryEach(task, (_, taskId) =>
        this.deps.tasks.commit(workspace, taskId, (_state, now) => ({ type: 'AbandonTask', data, now }), {
          fence,
        }),
      );
    }
  }

  /** Changes one task. An error is logged: the other tasks must not wait for this one. */
  private async tryEach(
    { workspace, taskId }: OpenTask,
    change: (workspace: string, taskId: string) => Promise<Pick<OpenTask, 'state' | 'version'> | null>,
  ): Promise<void> {
    try {
      const changed = await change(workspace, taskId);
      if (changed) this.deps.open.put({ workspace, taskId, state: changed.state, version: changed.version });
    } catch (error) {
      this.deps.logger.warn({ err: error, taskId }, 'task upkeep failed');
    }
  }
}
