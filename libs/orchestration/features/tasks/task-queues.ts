import { FairQueue, isClaimedTask, isOpenTask } from '@antiphon/orchestration-domain';
import type { TaskFold } from '@antiphon/orchestration-domain';

/** An open task as this process knows it. Its prompt is left out. */
export interface OpenTask {
  readonly workspace: string;
  readonly taskId: string;
  readonly state: TaskFold;
  /** Version of its event stream. */
  readonly version: number;
}

/** Requirements of a task on its worker. */
export interface Lane {
  /** Agent that must do it; null for any with the capabilities. */
  readonly agentId: string | null;
  readonly capabilities: readonly string[];
  /** Agent that delegates it; null for a task of a client. */
  readonly delegatorId: string | null;
}

const laneOf = ({ queued }: TaskFold): string =>
  JSON.stringify([
    queued?.agentId ?? null,
    [...(queued?.capabilities ?? [])].sort(),
    queued?.parentAgentId ?? null,
  ]);

const lanes = new Map<string, Lane>();
const MAX_LANES = 10_000;

const parseLane = (text: string): Lane => {
  const known = lanes.get(text);
  if (known) return known;
  const [agentId, capabilities, delegatorId] = JSON.parse(text) as [string | null, string[], string | null];
  if (lanes.size >= MAX_LANES) lanes.clear();
  const lane = { agentId, capabilities, delegatorId };
  lanes.set(text, lane);
  return lane;
};

/** Waiting tasks in the order in which they are claimed, and those that wait for a time. */
export class TaskQueues {
  private readonly tasks = new Map<string, OpenTask>();
  private readonly forAgents = new FairQueue();
  private readonly forWorkers = new Map<string, FairQueue>();
  /** Tasks that may be claimed from a time on, ms. */
  private readonly delayed = new Map<string, number>();
  private readonly openOf = new Map<string, number>();
  private readonly claims = new Map<string, OpenTask>();

  get(taskId: string): OpenTask | undefined {
    return this.tasks.get(taskId);
  }

  all(): IterableIterator<OpenTask> {
    return this.tasks.values();
  }

  /** Returns the tasks with a claim. */
  claimed(): OpenTask[] {
    return [...this.claims.values()];
  }

  get size(): number {
    return this.tasks.size;
  }

  /** Returns the number of open tasks of a workspace. */
  countOpen(workspace: string): number {
    return this.openOf.get(workspace) ?? 0;
  }

  /** Returns the workspaces in which a task waits for an agent. */
  workspacesOfAgents(): string[] {
    return this.forAgents.workspaces();
  }

  /** Records the newest state of a task; an ended one is forgotten. */
  put(task: OpenTask, now: number): void {
    const { taskId, workspace, state } = task;
    if (!isOpenTask(state)) return this.remove(taskId);
    if (!this.tasks.has(taskId)) this.openOf.set(workspace, this.countOpen(workspace) + 1);
    this.tasks.set(taskId, task);
    if (isClaimedTask(state)) this.claims.set(taskId, task);
    else this.claims.delete(taskId);
    this.placeInQueue(task, now);
  }

  /** Makes a waiting task unavailable until a time: another process may be claiming it. */
  delay(taskId: string, until: number): void {
    const task = this.tasks.get(taskId);
    if (!task || task.state.status !== 'queued') return;
    this.queueOf(task)?.remove(taskId);
    this.delayed.set(taskId, until);
  }

  /** Queues the tasks whose time has come. Returns the time of the next one, or Infinity. */
  releaseDue(now: number): number {
    let next = Infinity;
    for (const [taskId, dueAt] of this.delayed) {
      const task = this.tasks.get(taskId);
      if (dueAt > now) next = Math.min(next, dueAt);
      else {
        this.delayed.delete(taskId);
        if (task) this.enqueue(task);
      }
    }
    return next;
  }

  /** Takes the next task for an agent from the queue. `put` or `delay` returns it. */
  pickForAgent(isEligible: (workspace: string, lane: Lane) => boolean): OpenTask | undefined {
    const picked = this.forAgents.pick((workspace, lane) => isEligible(workspace, parseLane(lane)));
    return picked && this.tasks.get(picked.key);
  }

  /** Takes the next task for an external worker of a workspace from the queue. */
  pickForWorker(workspace: string, capabilities: ReadonlySet<string>): OpenTask | undefined {
    const picked = this.forWorkers
      .get(workspace)
      ?.pick((_, lane) => parseLane(lane).capabilities.every((name) => capabilities.has(name)));
    return picked && this.tasks.get(picked.key);
  }

  private remove(taskId: string): void {
    const task = this.tasks.get(taskId);
    if (!task) return;
    this.queueOf(task)?.remove(taskId);
    this.delayed.delete(taskId);
    this.claims.delete(taskId);
    this.tasks.delete(taskId);
    const left = this.countOpen(task.workspace) - 1;
    if (left > 0) this.openOf.set(task.workspace, left);
    else this.openOf.delete(task.workspace);
  }

  private placeInQueue(task: OpenTask, now: number): void {
    const { taskId, state } = task;
    if (state.status !== 'queued') {
      this.queueOf(task)?.remove(taskId);
      this.delayed.delete(taskId);
      return;
    }
    const dueAt = state.notBefore === null ? now : Date.parse(state.notBefore);
    if (dueAt > now) this.delay(taskId, dueAt);
    else if (!this.delayed.has(taskId)) this.enqueue(task);
  }

  private enqueue(task: OpenTask): void {
    const { workspace, taskId, state } = task;
    if (state.status !== 'queued') return;
    const queue = this.queueOf(task) ?? new FairQueue();
    if (state.queued?.executor === 'external') this.forWorkers.set(workspace, queue);
    const parent = state.queued?.parentAgentId ?? state.queued?.actor ?? '';
    const priority = state.queued?.priority ?? 9;
    queue.add({ key: taskId, workspace, parent, priority, lane: laneOf(state) });
  }

  private queueOf({ workspace, state }: OpenTask): FairQueue | undefined {
    return state.queued?.executor === 'external' ? this.forWorkers.get(workspace) : this.forAgents;
  }
}
