import type { CellJob } from '../cell/run-in-cell.js';
import type { PoolEnd } from './cell-pool.js';

export interface QueuedJob {
  readonly job: CellJob;
  readonly settle: (end: PoolEnd) => void;
  /** Says that the job holds no cell any more. */
  readonly done: () => void;
}

export interface JobQueueOptions {
  readonly maxQueued: number;
  readonly maxWaitMs: number;
  /** Jobs of one plug-in that may run at once. */
  readonly maxPerPlugin: number;
}

/**
 * Jobs that wait for a cell: bounded in number and in time. The plug-in whose job has waited longest is next, if it may
 * run; its sessions take turns, so that one with many slow calls delays another's by one of them, not by all.
 */
export interface JobQueue {
  readonly add: (job: CellJob) => Promise<PoolEnd>;
  /** The next job whose plug-in may run, or null. */
  readonly take: () => QueuedJob | null;
  readonly length: () => number;
  /** Ends every waiting job, and each that comes later. */
  readonly close: (message: string) => void;
}

interface Waiting {
  readonly job: CellJob;
  readonly settle: (end: PoolEnd) => void;
  readonly timer: NodeJS.Timeout;
  readonly onAbort: () => void;
  /** Round of its plug-in in which its session gets to it. */
  readonly round: number;
}

/** Which sessions' turn it is, for each plug-in. */
const createRounds = () => {
  const served = new Map<string, { readonly round: number; readonly session: string | undefined }>();
  const isOf = ({ plugin, session }: CellJob, other: CellJob): boolean =>
    other.plugin === plugin && other.session === session;
  /** A session that was just served lets the others of its round go first. */
  const isBefore = (a: Waiting, b: Waiting, last: string | undefined): boolean =>
    a.round < b.round || (a.round === b.round && b.job.session === last && a.job.session !== last);
  return {
    /** The round of a job that comes now: the one after the last of its session's that wait. */
    roundOf: (job: CellJob, waiting: readonly Waiting[]): number =>
      waiting
        .filter((other) => isOf(job, other.job))
        .reduce((latest, { round }) => Math.max(latest, round), served.get(job.plugin)?.round ?? 0) + 1,
    next: (plugin: string, waiting: readonly Waiting[]): Waiting | undefined => {
      const last = served.get(plugin)?.session;
      const [first, ...others] = waiting.filter(({ job }) => job.plugin === plugin);
      return first && others.reduce((best, entry) => (isBefore(entry, best, last) ? entry : best), first);
    },
    serve: ({ job: { plugin, session }, round }: Waiting): void =>
      void served.set(plugin, { round: Math.max(round, served.get(plugin)?.round ?? 0), session }),
  };
};

const unavailable = (message: string): PoolEnd => ({ end: 'unavailable', message });

export const createJobQueue = ({ maxQueued, maxWaitMs, maxPerPlugin }: JobQueueOptions): JobQueue => {
  let waiting: Waiting[] = [];
  let closed: string | null = null;
  const running = new Map<string, number>();
  const rounds = createRounds();
  const count = (plugin: string, by: 1 | -1): void => {
    const now = (running.get(plugin) ?? 0) + by;
    if (now === 0) running.delete(plugin);
    else running.set(plugin, now);
  };
  const release = ({ job, timer, onAbort }: Waiting): void => {
    clearTimeout(timer);
    job.signal?.removeEventListener('abort', onAbort);
  };
  const leave = (entry: Waiting, end: PoolEnd): void => {
    waiting = waiting.filter((other) => other !== entry);
    release(entry);
    entry.settle(end);
  };
  const enter = (job: CellJob, settle: (end: PoolEnd) => void): void => {
    const expired = unavailable(`no cell became free within ${maxWaitMs} ms`);
    const entry: Waiting = {
      job,
      settle,
      timer: setTimeout(() => leave(entry, expired), maxWaitMs),
      onAbort: () => leave(entry, { end: 'cancelled' }),
      round: rounds.roundOf(job, waiting),
    };
    job.signal?.addEventListener('abort', entry.onAbort);
    waiting.push(entry);
  };

  return {
    add: (job) => {
      if (closed !== null) return Promise.resolve(unavailable(closed));
      if (waiting.length >= maxQueued)
        return Promise.resolve(unavailable(`${waiting.length} calls wait already, try again later`));
      return new Promise((settle) => enter(job, settle));
    },
    take: () => {
      const oldest = waiting.find(({ job }) => (running.get(job.plugin) ?? 0) < maxPerPlugin);
      const next = oldest && rounds.next(oldest.job.plugin, waiting);
      if (next === undefined) return null;
      waiting = waiting.filter((other) => other !== next);
      release(next);
      rounds.serve(next);
      const { plugin } = next.job;
      count(plugin, 1);
      return { job: next.job, settle: next.settle, done: () => count(plugin, -1) };
    },
    length: () => waiting.length,
    close: (message) => {
      closed = message;
      for (const entry of waiting) leave(entry, unavailable(message));
    },
  };
};
