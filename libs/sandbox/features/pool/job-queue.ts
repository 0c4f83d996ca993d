import type { CellJob } from '../cell/run-in-cell.js';
import type { PoolEnd } from './cell-pool.js';

export interface QueuedJob {
  readonly job: CellJob;
  readonly settle: (end: PoolEnd) => void;
  /** Reports that the job occupies no cell any more. */
  readonly release: () => void;
}

export interface JobQueueOptions {
  readonly maxQueued: number;
  readonly maxWaitMs: number;
  /** Maximum number of running jobs of one plug-in. */
  readonly maxPerPlugin: number;
}

interface WaitingJob {
  readonly job: CellJob;
  readonly settle: (end: PoolEnd) => void;
  readonly timer: NodeJS.Timeout;
  readonly onAbort: () => void;
  /** Round of its plug-in in which the job runs. */
  readonly round: number;
}

/**
 * Returns whether `a` runs before `b`: a session that was served last waits for others of its
 * round.
 */
const runsBefore = (a: WaitingJob, b: WaitingJob, lastSession: string | undefined): boolean =>
  a.round < b.round ||
  (a.round === b.round && b.job.session === lastSession && a.job.session !== lastSession);

/** Rounds of each plug-in, in which each of its sessions runs at most one job. */
class SessionRounds {
  private readonly served = new Map<
    string,
    { readonly round: number; readonly session: string | undefined }
  >();

  /** Returns the round of a new job: the one after its session's last waiting job. */
  roundOf({ plugin, session }: CellJob, waiting: readonly WaitingJob[]): number {
    const latest = waiting
      .filter(({ job }) => job.plugin === plugin && job.session === session)
      .reduce((max, { round }) => Math.max(max, round), this.lastRound(plugin));
    return latest + 1;
  }

  findNext(plugin: string, waiting: readonly WaitingJob[]): WaitingJob | undefined {
    const last = this.served.get(plugin)?.session;
    const [first, ...others] = waiting.filter(({ job }) => job.plugin === plugin);
    return first && others.reduce((best, entry) => (runsBefore(entry, best, last) ? entry : best), first);
  }

  markServed({ job: { plugin, session }, round }: WaitingJob): void {
    this.served.set(plugin, { round: Math.max(round, this.lastRound(plugin)), session });
  }

  private lastRound(plugin: string): number {
    return this.served.get(plugin)?.round ?? 0;
  }
}

const unavailable = (message: string): PoolEnd => ({ end: 'unavailable', message });

/**
 * Jobs that wait for a cell, limited in number and time (backpressure). The plug-in with the oldest
 * waiting job is next, if it may run another. Its sessions take turns: many slow calls of one
 * session delay another session by one call.
 */
export class JobQueue {
  private waiting: readonly WaitingJob[] = [];
  private closedReason: string | null = null;
  private readonly running = new Map<string, number>();
  private readonly rounds = new SessionRounds();

  constructor(private readonly options: JobQueueOptions) {}

  get length(): number {
    return this.waiting.length;
  }

  add(job: CellJob): Promise<PoolEnd> {
    const { waiting, closedReason } = this;
    if (closedReason !== null) return Promise.resolve(unavailable(closedReason));
    if (waiting.length >= this.options.maxQueued)
      return Promise.resolve(unavailable(`${waiting.length} calls wait already, try again later`));
    return new Promise((settle) => this.enqueue(job, settle));
  }

  /** Removes and returns the next job whose plug-in may run, or null. */
  take(): QueuedJob | null {
    const { maxPerPlugin } = this.options;
    const oldest = this.waiting.find(({ job }) => (this.running.get(job.plugin) ?? 0) < maxPerPlugin);
    const next = oldest && this.rounds.findNext(oldest.job.plugin, this.waiting);
    if (next === undefined) return null;
    this.remove(next);
    this.rounds.markServed(next);
    const { job, settle } = next;
    this.countRunning(job.plugin, 1);
    return { job, settle, release: () => this.countRunning(job.plugin, -1) };
  }

  /** Ends all waiting jobs and refuses later ones. */
  close(reason: string): void {
    this.closedReason = reason;
    for (const entry of this.waiting) this.refuse(entry, unavailable(reason));
  }

  private enqueue(job: CellJob, settle: (end: PoolEnd) => void): void {
    const { maxWaitMs } = this.options;
    const expired = unavailable(`no cell became free within ${maxWaitMs} ms`);
    const entry: WaitingJob = {
      job,
      settle,
      timer: setTimeout(() => this.refuse(entry, expired), maxWaitMs),
      onAbort: () => this.refuse(entry, { end: 'cancelled' }),
      round: this.rounds.roundOf(job, this.waiting),
    };
    job.signal?.addEventListener('abort', entry.onAbort);
    this.waiting = [...this.waiting, entry];
  }

  private refuse(entry: WaitingJob, end: PoolEnd): void {
    this.remove(entry);
    entry.settle(end);
  }

  private remove(entry: WaitingJob): void {
    this.waiting = this.waiting.filter((other) => other !== entry);
    clearTimeout(entry.timer);
    entry.job.signal?.removeEventListener('abort', entry.onAbort);
  }

  private countRunning(plugin: string, change: 1 | -1): void {
    const count = (this.running.get(plugin) ?? 0) + change;
    if (count === 0) this.running.delete(plugin);
    else this.running.set(plugin, count);
  }
}
