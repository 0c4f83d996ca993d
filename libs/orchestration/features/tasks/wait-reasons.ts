import type pg from 'pg';
import type { TaskItem, TaskWait } from '@antiphon/contracts/agent';
import type { Clock } from '@antiphon/kernel';
import { canDo, mayGet, readBusy } from './assign-tasks.js';
import type { OpenTasks } from './open-tasks.js';
import type { TaskAgent, TaskAgents } from './task-agents.js';
import type { Lane, OpenTask } from './task-queues.js';

interface WaitReasonsDeps {
  readonly pool: pg.Pool;
  readonly open: OpenTasks;
  readonly agents: TaskAgents;
  readonly clock: Clock;
}

const laneOf = ({ state: { queued } }: OpenTask): Lane => ({
  agentId: queued?.agentId ?? null,
  capabilities: queued?.capabilities ?? [],
  delegatorId: queued?.parentAgentId ?? null,
});

const rankOf = ({ state: { queued } }: OpenTask): string => `${queued?.priority ?? 9} ${queued?.at ?? ''}`;

const NOTHING = { missing: [], agentId: null, place: null, until: null } as const;

/** Returns the capabilities that no agent has; all of the lane if no agent has them together. */
const missingOf = ({ capabilities }: Lane, known: readonly TaskAgent[]): string[] => {
  const single = capabilities.filter((name) => !known.some((agent) => agent.capabilities.includes(name)));
  return single.length > 0 ? single : [...capabilities];
};

/** Agents and waiting tasks of a workspace at one time. */
class Waiting {
  private readonly ableOf = new Map<string, readonly TaskAgent[]>();

  constructor(
    private readonly known: readonly TaskAgent[],
    private readonly busy: ReadonlySet<string>,
    private readonly tasks: readonly OpenTask[],
    private readonly now: number,
  ) {}

  reasonOf(task: OpenTask): TaskWait {
    const { queued, notBefore } = task.state;
    const lane = laneOf(task);
    const { agentId } = lane;
    if (queued?.executor === 'external') return { ...NOTHING, reason: 'worker' };
    if (notBefore !== null && Date.parse(notBefore) > this.now)
      return { ...NOTHING, reason: 'retry', until: notBefore };
    const able = this.able(lane);
    if (able.length === 0)
      return { ...NOTHING, reason: 'no_agent', agentId, missing: missingOf(lane, this.known) };
    const working = able.filter(({ takesWork }) => takesWork);
    if (working.some((agent) => !this.busy.has(agent.agentId)))
      return { ...NOTHING, reason: 'next', agentId };
    const place = this.placeOf(task, able);
    return { ...NOTHING, reason: working.length === 0 ? 'paused' : 'busy', agentId, place };
  }

  private able(lane: Lane): readonly TaskAgent[] {
    const key = JSON.stringify([lane.agentId, lane.capabilities, lane.delegatorId]);
    const able =
      this.ableOf.get(key) ??
      this.known.filter((agent) => canDo(agent, lane) && mayGet(this.known, lane, agent));
    this.ableOf.set(key, able);
    return able;
  }

  /** Counts the tasks before one that wait for any of its agents. Shares of tenants are left out. */
  private placeOf(task: OpenTask, able: readonly TaskAgent[]): number {
    const rank = rankOf(task);
    const before = this.tasks.filter(
      (other) =>
        other.taskId !== task.taskId &&
        rankOf(other) < rank &&
        this.able(laneOf(other)).some((agent) => able.includes(agent)),
    );
    return before.length + 1;
  }
}

/** Says why tasks wait, from the agents and the open tasks that this process knows. */
export class WaitReasons {
  constructor(private readonly deps: WaitReasonsDeps) {}

  /** Returns tasks with the reasons of those that wait in the queue. */
  async addTo(workspace: string, items: readonly TaskItem[]): Promise<TaskItem[]> {
    const isWaiting = ({ kind, state }: TaskItem): boolean => kind === 'task' && state === 'queued';
    if (!items.some(isWaiting)) return items.map((item) => ({ ...item, waiting: null }));
    const waiting = await this.read(workspace);
    return items.map((item) => {
      const task = isWaiting(item) ? this.deps.open.queues.get(item.id) : undefined;
      return { ...item, waiting: task?.state.status === 'queued' ? waiting.reasonOf(task) : null };
    });
  }

  private async read(workspace: string): Promise<Waiting> {
    const { open, agents, pool, clock } = this.deps;
    await open.catchUp();
    const [known, turns] = await Promise.all([agents.list(workspace), readBusy(pool, [workspace])]);
    const busy = new Set([...turns].map((key) => key.slice(workspace.length + 1)));
    for (const claimed of open.queues.claimed())
      if (claimed.workspace === workspace && claimed.state.agentId !== null) busy.add(claimed.state.agentId);
    const queued = [...open.queues.all()].filter(
      ({ workspace: other, state: { status, queued: spec } }) =>
        other === workspace && status === 'queued' && spec?.executor !== 'external',
    );
    return new Waiting(known, busy, queued, clock.now());
  }
}
