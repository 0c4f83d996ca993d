import { backoffDelay, sleep } from '@antiphon/kernel';
import type { RunEnd } from '@antiphon/sandbox-domain';
import type { Logger } from '@antiphon/observability';
import type { Cell } from '../cell/cell-process.js';
import { loadInCell, runAbortable } from '../cell/run-in-cell.js';
import type { CellJob, ModuleImage } from '../cell/run-in-cell.js';

export interface CellSlotOptions {
  readonly open: () => Promise<Cell>;
  /** A cell that is open already. */
  readonly first?: Cell;
  /** Modules that each new cell compiles before it takes jobs. */
  readonly images: readonly ModuleImage[];
  /** Called when a cell has opened. After a job, the caller offers the next one itself. */
  readonly onIdle: () => void;
  readonly logger: Logger;
}

/**
 * Working time after which a cell is replaced, ms: the kernel's limit on processor time never ends
 * an honest call.
 */
export const RETIRE_AFTER_MS = 30_000;
const OPEN_BACKOFF = { firstMs: 200, maxMs: 5_000 };

/** Runs jobs in one cell, one after another, until the cell is replaced. */
class CellRun {
  private isRunning = false;
  private busyMs = 0;
  private jobs = 0;

  constructor(private readonly cell: Cell) {}

  get state(): 'idle' | 'busy' | 'unusable' {
    if (this.isRunning) return 'busy';
    return this.cell.isUsable() ? 'idle' : 'unusable';
  }

  get hasServed(): boolean {
    return this.jobs > 0;
  }

  async run(job: CellJob): Promise<RunEnd> {
    const startedAt = performance.now();
    this.isRunning = true;
    const end = await runAbortable(this.cell, job);
    this.isRunning = false;
    this.jobs += 1;
    this.busyMs += performance.now() - startedAt;
    if (this.busyMs > RETIRE_AFTER_MS) this.cell.kill();
    return end;
  }
}

/** Holds one open cell and replaces it when it ends. Retries a failed start with backoff. */
export class CellSlot {
  /** Resolves when the first cell is ready, or the first attempt to open one has failed. */
  readonly opened: Promise<void>;
  private readonly closing = new AbortController();
  /** Digests of modules that did not compile in time; only their own calls compile them again. */
  private readonly slowModules = new Set<string>();
  private readonly stopped: Promise<void>;
  private current: CellRun | null = null;
  private markOpened = (): void => undefined;

  constructor(private readonly options: CellSlotOptions) {
    this.opened = new Promise<void>((resolve) => (this.markOpened = resolve));
    this.stopped = this.serveCells();
  }

  get state(): 'opening' | 'idle' | 'busy' {
    const state = this.current?.state ?? 'unusable';
    return state === 'unusable' ? 'opening' : state;
  }

  /** Runs a job; only valid while the slot is idle. */
  run(job: CellJob): Promise<RunEnd> {
    if (this.current === null) throw new Error('the slot has no cell');
    return this.current.run(job);
  }

  /** Kills the cell and the job in it. */
  async close(): Promise<void> {
    this.closing.abort();
    await this.stopped;
  }

  private async serveCells(): Promise<void> {
    const { signal } = this.closing;
    let { first } = this.options;
    let failures = 0;
    while (!signal.aborted) {
      const hasServed = await this.openAndServe(first);
      first = undefined;
      failures = hasServed ? 0 : failures + 1;
      // `close` aborts the wait, which is no error.
      if (!hasServed) await sleep(backoffDelay(OPEN_BACKOFF, failures - 1), signal).catch(() => undefined);
    }
  }

  private async openAndServe(first: Cell | undefined): Promise<boolean> {
    try {
      return await this.serve(first ?? (await this.options.open()));
    } catch (error) {
      this.options.logger.error({ err: error }, 'cell start failed, retrying');
      return false;
    } finally {
      this.markOpened();
    }
  }

  /** Uses a cell until it ends. Returns whether it ran a job. */
  private async serve(cell: Cell): Promise<boolean> {
    const { signal } = this.closing;
    await this.warmUp(cell);
    const current = new CellRun(cell);
    signal.addEventListener('abort', cell.kill);
    if (signal.aborted) cell.kill();
    this.current = current;
    this.markOpened();
    this.options.onIdle();
    await cell.ended;
    signal.removeEventListener('abort', cell.kill);
    this.current = null;
    return current.hasServed;
  }

  /**
   * Compiles all modules in a new cell. A slow one is tried once, or it would delay each new cell.
   */
  private async warmUp(cell: Cell): Promise<void> {
    const { images, logger } = this.options;
    for (const image of images.filter(({ digest }) => !this.slowModules.has(digest))) {
      const failure = await loadInCell(cell, image);
      if (failure === null) continue;
      this.slowModules.add(image.digest);
      logger.warn({ digest: image.digest, failure }, 'module warm-up failed');
    }
  }
}
