import type { RunEnd } from '@antiphon/sandbox-domain';
import type { Logger } from '@antiphon/observability';
import type { Cell } from '../cell/cell-process.js';
import type { CellJob, ModuleImage } from '../cell/run-in-cell.js';
import { createCellSlot } from './cell-slot.js';
import type { CellSlot } from './cell-slot.js';
import { createJobQueue } from './job-queue.js';
import type { QueuedJob } from './job-queue.js';

export type PoolEnd =
  | RunEnd
  /** The job provably did not run. */
  | { readonly end: 'unavailable'; readonly message: string }
  /** The pool was closed while the job ran: nobody knows how far it came. */
  | { readonly end: 'stopped' };

export interface CellPoolOptions {
  readonly open: () => Promise<Cell>;
  /** A cell that is open already. */
  readonly first?: Cell;
  readonly size: number;
  /** Jobs that may wait, beyond those that run. */
  readonly maxQueued: number;
  /** The longest that a job waits for a cell, ms. */
  readonly maxWaitMs: number;
  /** Compiled in each new cell before it takes jobs. */
  readonly images: readonly ModuleImage[];
  readonly logger: Logger;
}

export interface PoolStats {
  readonly cells: number;
  readonly busy: number;
  readonly queued: number;
}

export interface CellPool {
  readonly run: (job: CellJob) => Promise<PoolEnd>;
  readonly stats: () => PoolStats;
  /** Resolves when each slot has opened its first cell, or failed to. */
  readonly warm: Promise<void>;
  /** Ends every cell and refuses every waiting job: whoever stops has let its requests end before. */
  readonly close: () => Promise<void>;
}

/** Keeps `size` cells open, replaces each that ends, and gives them jobs in order, fairly between plug-ins. */
export const createCellPool = ({
  size,
  maxQueued,
  maxWaitMs,
  first,
  ...slotOptions
}: CellPoolOptions): CellPool => {
  // One plug-in that loops until its deadline must leave a cell to the others.
  const queue = createJobQueue({ maxQueued, maxWaitMs, maxPerPlugin: Math.max(1, size - 1) });
  const slots: CellSlot[] = [];
  let closed = false;
  const start = (slot: CellSlot, { job, settle, done }: QueuedJob): void => {
    const failed = (error: unknown): void => {
      slotOptions.logger.error({ err: error, plugin: job.plugin }, 'a call broke off unexpectedly');
      settle({ end: 'died', message: 'the call broke off; the log line with this request id has why' });
    };
    void slot
      .run(job)
      .then((end) => settle(closed && end.end === 'died' ? { end: 'stopped' } : end), failed)
      .finally(() => {
        done();
        dispatch();
      });
  };
  const dispatch = (): void => {
    for (const slot of slots.filter((candidate) => candidate.state() === 'idle')) {
      const next = queue.take();
      if (next === null) return;
      start(slot, next);
    }
  };
  for (let index = 0; index < size; index++)
    slots.push(
      createCellSlot({ ...slotOptions, onIdle: dispatch, ...(index === 0 && first ? { first } : {}) }),
    );

  return {
    run: (job) => {
      const answer = queue.add(job);
      dispatch();
      return answer;
    },
    stats: () => ({
      cells: slots.filter((slot) => slot.state() !== 'opening').length,
      busy: slots.filter((slot) => slot.state() === 'busy').length,
      queued: queue.length(),
    }),
    warm: Promise.all(slots.map((slot) => slot.opened)).then(() => undefined),
    close: async () => {
      closed = true;
      queue.close('the sandbox is stopping');
      await Promise.all(slots.map((slot) => slot.close()));
    },
  };
};
