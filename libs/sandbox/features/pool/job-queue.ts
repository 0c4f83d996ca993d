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

/** Jobs that wait for a cell: bounded in number and in time, first come first served among those that may run. */
export interface JobQueue {
  readonly add: (job: CellJob) => Promise<PoolEnd>;
  /** The oldest job whose plug-in may run, or null. */
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
}

const unavailable = (message: string): PoolEnd => ({ end: 'unavailable', message });

export const createJobQueue = ({ maxQueued, maxWaitMs, maxPerPlugin }: JobQueueOptions): JobQueue => {
  let waiting: Waiting[] = [];
  let closed: string | null = null;
  const running = new Map<string, number>();
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
      const index = waiting.findIndex(({ job }) => (running.get(job.plugin) ?? 0) < maxPerPlugin);
      const [next] = index === -1 ? [] : waiting.splice(index, 1);
      if (next === undefined) return null;
      release(next);
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
