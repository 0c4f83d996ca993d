/** A waiting task as its order depends on it. */
export interface QueuedTask {
  readonly key: string;
  readonly workspace: string;
  /** Agent or client that wants it; each of them gets the same share of its workspace. */
  readonly parent: string;
  /** 0 is the most urgent. */
  readonly priority: number;
  /** Tasks of one lane can be done by the same agents. */
  readonly lane: string;
}

/**
 * Bound on the wait of the least urgent class, in multiples of its fair share. Of `n` classes that
 * wait, each is picked at least once in `AGEING × n` picks.
 */
export const AGEING = 10;

/** Number of picks that a key had, counted from that of the least served key at its arrival. */
class Shares {
  private readonly served = new Map<string, number>();

  /** Adds a key that has just got work. It does not catch up for the time without work. */
  join(key: string, active: Iterable<string>): void {
    let least = Infinity;
    for (const other of active) if (other !== key) least = Math.min(least, this.of(other));
    if (least !== Infinity) this.served.set(key, Math.max(this.of(key), least));
    else this.served.delete(key);
  }

  of(key: string): number {
    return this.served.get(key) ?? 0;
  }

  count(key: string): void {
    this.served.set(key, this.of(key) + 1);
  }
}

/** A task with its place in the order of arrival. */
interface Arrived {
  readonly task: QueuedTask;
  readonly place: number;
}

/** The tasks of one parent: lanes of tasks in the order of their arrival. */
type Lanes = Map<string, Map<string, Arrived>>;

interface Tenant {
  readonly parents: Map<string, Lanes>;
  readonly shares: Shares;
}

interface PriorityClass {
  readonly tenants: Map<string, Tenant>;
  /** Picks of other classes since the last pick of this one. */
  skips: number;
}

type Eligible = (workspace: string, lane: string) => boolean;

/** Returns what `find` returns for the least served group that has anything. */
const leastServed = <V, T>(
  groups: ReadonlyMap<string, V>,
  shares: Shares,
  find: (group: V, key: string) => T | undefined,
): T | undefined => {
  const byShare = [...groups].sort(([a], [b]) => shares.of(a) - shares.of(b));
  for (const [key, group] of byShare) {
    const found = find(group, key);
    if (found) return found;
  }
  return undefined;
};

/** Returns the oldest task of a parent in an eligible lane. */
const oldestOf = (lanes: Lanes, isEligible: (lane: string) => boolean): QueuedTask | undefined => {
  const heads = [...lanes].flatMap(([lane, waiting]) =>
    isEligible(lane) ? (waiting.values().next().value ?? []) : [],
  );
  return heads.sort((a, b) => a.place - b.place)[0]?.task;
};

/**
 * Order of the waiting tasks: by priority, then by fair shares of the workspaces and of the parents
 * in each, then by age. Ageing bounds the wait of the least urgent ones. The order depends on the
 * calls alone: no clock, no randomness.
 */
export class FairQueue {
  private readonly classes = new Map<number, PriorityClass>();
  private readonly tasks = new Map<string, QueuedTask>();
  private readonly workspaceShares = new Shares();
  private readonly counts = new Map<string, number>();
  private arrivals = 0;

  get size(): number {
    return this.tasks.size;
  }

  has(key: string): boolean {
    return this.tasks.has(key);
  }

  /** Returns the workspaces that have waiting tasks. */
  workspaces(): string[] {
    return [...this.counts.keys()];
  }

  add(task: QueuedTask): void {
    if (this.tasks.has(task.key)) return;
    const { workspace, parent, priority, lane } = task;
    if (!this.counts.has(workspace)) this.workspaceShares.join(workspace, this.counts.keys());
    this.counts.set(workspace, (this.counts.get(workspace) ?? 0) + 1);
    const level = this.classes.get(priority) ?? { tenants: new Map<string, Tenant>(), skips: 0 };
    this.classes.set(priority, level);
    const tenant = level.tenants.get(workspace) ?? {
      parents: new Map<string, Lanes>(),
      shares: new Shares(),
    };
    level.tenants.set(workspace, tenant);
    if (!tenant.parents.has(parent)) tenant.shares.join(parent, tenant.parents.keys());
    const lanes: Lanes = tenant.parents.get(parent) ?? new Map<string, Map<string, Arrived>>();
    tenant.parents.set(parent, lanes);
    const waiting = lanes.get(lane) ?? new Map<string, Arrived>();
    lanes.set(lane, waiting.set(task.key, { task, place: ++this.arrivals }));
    this.tasks.set(task.key, task);
  }

  remove(key: string): void {
    const task = this.tasks.get(key);
    if (!task) return;
    this.tasks.delete(key);
    this.removeFromClass(task);
    const { workspace } = task;
    const left = (this.counts.get(workspace) ?? 1) - 1;
    if (left > 0) this.counts.set(workspace, left);
    else this.counts.delete(workspace);
  }

  /** Removes and returns the next task that is eligible, or undefined if there is none. */
  pick(isEligible: Eligible): QueuedTask | undefined {
    const candidates = [...this.classes.entries()]
      .sort(([a], [b]) => a - b)
      .flatMap(([priority, level]) => {
        const task = this.firstOf(level, isEligible);
        return task ? [{ priority, level, task }] : [];
      });
    const overdue = candidates
      // Several classes may be overdue at once, and each of them needs a pick of its own.
      .filter(({ level }) => level.skips >= (AGEING - 1) * candidates.length - 1)
      .sort((a, b) => b.level.skips - a.level.skips)[0];
    const chosen = overdue ?? candidates[0];
    if (!chosen) return undefined;
    for (const { level } of candidates) level.skips = level === chosen.level ? 0 : level.skips + 1;
    this.workspaceShares.count(chosen.task.workspace);
    chosen.level.tenants.get(chosen.task.workspace)?.shares.count(chosen.task.parent);
    this.remove(chosen.task.key);
    return chosen.task;
  }

  private removeFromClass({ key, workspace, parent, priority, lane }: QueuedTask): void {
    const level = this.classes.get(priority);
    const tenant = level?.tenants.get(workspace);
    const lanes = tenant?.parents.get(parent);
    const waiting = lanes?.get(lane);
    if (!level || !tenant || !lanes || !waiting) return;
    waiting.delete(key);
    if (waiting.size === 0) lanes.delete(lane);
    if (lanes.size === 0) tenant.parents.delete(parent);
    if (tenant.parents.size === 0) level.tenants.delete(workspace);
    if (level.tenants.size === 0) this.classes.delete(priority);
  }

  private firstOf(level: PriorityClass, isEligible: Eligible): QueuedTask | undefined {
    return leastServed(level.tenants, this.workspaceShares, (tenant, workspace) =>
      leastServed(tenant.parents, tenant.shares, (lanes) =>
        oldestOf(lanes, (lane) => isEligible(workspace, lane)),
      ),
    );
  }
}
