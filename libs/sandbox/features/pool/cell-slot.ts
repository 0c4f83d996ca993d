import { setTimeout as delay } from 'node:timers/promises';
import type { RunEnd } from '@antiphon/sandbox-domain';
import type { Logger } from '@antiphon/observability';
import type { Cell } from '../cell/cell-process.js';
import { loadInCell, runUntilAborted } from '../cell/run-in-cell.js';
import type { CellJob, ModuleImage } from '../cell/run-in-cell.js';

export interface CellSlotOptions {
  readonly open: () => Promise<Cell>;
  /** A cell that is open already. */
  readonly first?: Cell;
  /** Compiled in each new cell before it takes jobs. */
  readonly images: readonly ModuleImage[];
  /** Called when a cell has been opened; after a job it is for the caller to offer the next. */
  readonly onIdle: () => void;
  readonly logger: Logger;
}

/** A place for one cell, which is replaced whenever it ends. */
export interface CellSlot {
  readonly state: () => 'opening' | 'idle' | 'busy';
  /** Only to be called when idle. */
  readonly run: (job: CellJob) => Promise<RunEnd>;
  /** Resolves when a cell is ready, or the first attempt to open one has failed. */
  readonly opened: Promise<void>;
  /** Ends the cell, and with it the job that runs in it. */
  readonly close: () => Promise<void>;
}

/** A cell is replaced after this much work, so that honest calls never meet its limit on processor time. */
export const RETIRE_AFTER_MS = 30_000;
const MIN_BACKOFF_MS = 100;
const MAX_BACKOFF_MS = 5_000;

const createWarmUp = ({ images, logger }: CellSlotOptions): ((cell: Cell) => Promise<void>) => {
  /** What could not be compiled in time once is left to its own calls, or it would cost the others their cells. */
  const cold = new Set<string>();
  return async (cell) => {
    for (const image of images.filter(({ digest }) => !cold.has(digest))) {
      const obstacle = await loadInCell(cell, image);
      if (obstacle === null) continue;
      cold.add(image.digest);
      logger.warn(
        { digest: image.digest, obstacle },
        'a module could not be compiled ahead of its first call',
      );
    }
  };
};

/** Runs jobs in one cell until it must be given up, one after another. */
const createTenancy = (cell: Cell) => {
  let running: Promise<RunEnd> | null = null;
  let busyMs = 0;
  let served = 0;
  const run = async (job: CellJob): Promise<RunEnd> => {
    const started = performance.now();
    running = runUntilAborted(cell, job);
    const end = await running;
    running = null;
    served += 1;
    busyMs += performance.now() - started;
    if (busyMs > RETIRE_AFTER_MS) cell.kill();
    return end;
  };
  return {
    idle: () => running === null && cell.usable(),
    busy: () => running !== null,
    served: () => served,
    run,
  };
};

/** Opens a cell, and another whenever it ends, until closed; failures to open are retried with backoff. */
export const createCellSlot = (options: CellSlotOptions): CellSlot => {
  const { open, onIdle, logger } = options;
  const closing = new AbortController();
  const warmUp = createWarmUp(options);
  let tenancy: ReturnType<typeof createTenancy> | null = null;
  let markOpened = (): void => undefined;
  const opened = new Promise<void>((resolve) => (markOpened = resolve));

  /** The life of one cell; true when it was of use. */
  const live = async (cell: Cell): Promise<boolean> => {
    await warmUp(cell);
    const current = createTenancy(cell);
    closing.signal.addEventListener('abort', cell.kill);
    if (closing.signal.aborted) cell.kill();
    tenancy = current;
    markOpened();
    onIdle();
    await cell.ended;
    closing.signal.removeEventListener('abort', cell.kill);
    tenancy = null;
    return current.served() > 0;
  };
  const liveOnce = async (first: Cell | undefined): Promise<boolean> => {
    try {
      return await live(first ?? (await open()));
    } catch (error) {
      logger.error({ err: error }, 'a cell could not be opened');
      return false;
    } finally {
      markOpened();
    }
  };
  const keep = async (): Promise<void> => {
    let first = options.first;
    let backoffMs = MIN_BACKOFF_MS;
    while (!closing.signal.aborted) {
      const useful = await liveOnce(first);
      first = undefined;
      backoffMs = useful ? MIN_BACKOFF_MS : Math.min(MAX_BACKOFF_MS, backoffMs * 2);
      // Closing ends the wait early, and that is all that the rejection says.
      if (!useful) await delay(backoffMs, undefined, { signal: closing.signal }).catch(() => undefined);
    }
  };
  const kept = keep();

  return {
    state: () =>
      tenancy === null ? 'opening' : tenancy.busy() ? 'busy' : tenancy.idle() ? 'idle' : 'opening',
    run: (job) => {
      if (tenancy === null) throw new Error('the slot has no cell');
      return tenancy.run(job);
    },
    opened,
    close: async () => {
      closing.abort();
      await kept;
    },
  };
};
