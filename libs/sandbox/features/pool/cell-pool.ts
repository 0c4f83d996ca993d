import type { RunEnd } from '@antiphon/sandbox-domain';
import type { Logger } from '@antiphon/observability';
import type { Cell } from '../cell/cell-process.js';
import type { CellJob, ModuleImage } from '../cell/run-in-cell.js';
import { CellSlot } from './cell-slot.js';
import { JobQueue } from './job-queue.js';
import type { QueuedJob } from './job-queue.js';

export type PoolEnd =
  | RunEnd
  /** The job certainly did not run. */
  | { readonly end: 'unavailable'; readonly message: string }
  /** The pool closed during the job, so the job's progress is unknown. */
  | { readonly end: 'stopped' };

export interface CellPoolOptions {
  readonly open: () => Promise<Cell>;
  /** A cell that is open already. */
  readonly first?: Cell;
  readonly size: number;
  /** Maximum number of waiting jobs, in addition to running ones. */
  readonly maxQueued: number;
  /** Maximum time that a job waits for a cell, ms. */
  readonly maxWaitMs: number;
  /** Modules that each new cell compiles before it takes jobs. */
  readonly images: readonly ModuleImage[];
  readonly logger: Logger;
}

export interface PoolStats {
  readonly cells: number;
  readonly busy: number;
  readonly queued: number;
}

/**
 * Holds `size` open cells and replaces each that ends. Gives them jobs in order, fairly between
 * plug-ins.
 */
export class CellPool {
  /** Resolves when each slot has opened its first cell, or failed to. */
  readonly warm: Promise<void>;
  private readonly queue: JobQueue;
  private readonly slots: CellSlot[] = [];
  private readonly logger: Logger;
  private isClosed = false;

  constructor({ size, maxQueued, maxWaitMs, first, ...slotOptions }: CellPoolOptions) {
    this.logger = slotOptions.logger;
    // One plug-in that loops until its deadline must leave a cell to the others.
    this.queue = new JobQueue({ maxQueued, maxWaitMs, maxPerPlugin: Math.max(1, size - 1) });
    for (let index = 0; index < size; index++) {
      const onIdle = (): void => this.dispatch();
      this.slots.push(new CellSlot({ ...slotOptions, onIdle, first: index === 0 ? first : undefined }));
    }
    this.warm = Promise.all(this.slots.map((slot) => slot.opened)).then(() => undefined);
  }

  run(job: CellJob): Promise<PoolEnd> {
    const end = this.queue.add(job);
    this.dispatch();
    return end;
  }

  stats(): PoolStats {
    return {
      cells: this.slots.filter((slot) => slot.state !== 'opening').length,
      busy: this.slots.filter((slot) => slot.state === 'busy').length,
      queued: this.queue.length,
    };
  }

  /** Kills all cells and refuses all waiting jobs. The caller lets its requests end first. */
  async close(): Promise<void> {
    this.isClosed = true;
    this.queue.close('the sandbox is stopping');
    await Promise.all(this.slots.map((slot) => slot.close()));
  }

  private dispatch(): void {
    for (const slot of this.slots.filter((candidate) => candidate.state === 'idle')) {
      const next = this.queue.take();
      if (next === null) return;
      void this.start(slot, next);
    }
  }

  private async start(slot: CellSlot, { job, settle, release }: QueuedJob): Promise<void> {
    try {
      const obstacle = job.findObstacle?.() ?? null;
      const end: PoolEnd =
        obstacle === null ? await slot.run(job) : { end: 'unavailable', message: obstacle };
      settle(this.isClosed && end.end === 'died' ? { end: 'stopped' } : end);
    } catch (error) {
      this.logger.error({ err: error, plugin: job.plugin }, 'tool call failed unexpectedly');
      settle({ end: 'died', message: 'the call broke off; the log line with this request id has why' });
    }
    release();
    this.dispatch();
  }
}
