import { createWakeSignal, sleep } from '@antiphon/kernel';
import type { Pool } from 'pg';
import { WorkspaceTail } from './workspace-tail.js';

/** Interval of reads without a notification, ms. A notification may be lost. */
const POLL_MS = 1_000;
/** Number of workspaces that are read at the same time. */
const READS = 4;
/** Bytes that the buffers of all workspaces share, and bounds of one. It has more than one read. */
const TOTAL_BYTES = 64 * 1024 * 1024;
const MIN_BYTES = 2 * 1024 * 1024;
const MAX_BYTES = 8 * 1024 * 1024;

interface OpenTail {
  readonly tail: Promise<WorkspaceTail>;
  users: number;
}

export interface LogTailOptions {
  readonly pool: Pool;
  /**
   * Calls back soon after an append. Returns the function that ends the subscription. Only called
   * while a workspace has subscribers.
   */
  readonly onAppend: (wake: () => void) => () => void;
  readonly onError: (error: unknown) => void;
}

/**
 * Follows the end of the log for the subscribers of a gateway: one read for each workspace and
 * wake, shared by all its subscribers. A workspace without subscribers costs nothing.
 */
export class LogTail {
  readonly pool: Pool;
  readonly #options: LogTailOptions;
  readonly #tails = new Map<string, OpenTail>();
  readonly #signal = createWakeSignal();
  readonly #closed = new AbortController();
  #isRunning = false;

  constructor(options: LogTailOptions) {
    this.#options = options;
    this.pool = options.pool;
  }

  /**
   * Returns the tail of a workspace, read to the end that the log has now. `release` must be called
   * once.
   */
  async open(workspace: string): Promise<{ tail: WorkspaceTail; release: () => void }> {
    const entry = this.#acquire(workspace);
    const release = (): void => {
      if (--entry.users === 0 && this.#tails.get(workspace) === entry) this.#tails.delete(workspace);
    };
    try {
      const tail = await entry.tail;
      await tail.read(this.#bufferBytes());
      if (!tail.failure) return { tail, release };
      // The log was restored while the tail was open: its successor reads the new history.
      if (this.#tails.get(workspace) === entry) this.#tails.delete(workspace);
    } catch (error) {
      release();
      throw error;
    }
    release();
    return this.open(workspace);
  }

  onModuleDestroy(): void {
    this.close();
  }

  close(): void {
    this.#closed.abort();
    this.#signal.wake();
  }

  #acquire(workspace: string): OpenTail {
    const known = this.#tails.get(workspace);
    if (known) {
      known.users++;
      return known;
    }
    const opened: OpenTail = { tail: WorkspaceTail.open(this.pool, workspace), users: 1 };
    this.#tails.set(workspace, opened);
    opened.tail.catch(() => this.#tails.get(workspace) === opened && this.#tails.delete(workspace));
    void this.#run();
    return opened;
  }

  #bufferBytes(): number {
    return Math.max(MIN_BYTES, Math.min(MAX_BYTES, TOTAL_BYTES / Math.max(1, this.#tails.size)));
  }

  /** Reads all open tails after each wake, until none is open. */
  async #run(): Promise<void> {
    if (this.#isRunning) return;
    this.#isRunning = true;
    const stopListening = this.#options.onAppend(() => this.#signal.wake());
    while (this.#tails.size > 0 && !this.#closed.signal.aborted) {
      await this.#signal.wait(POLL_MS);
      if (!(await this.#readAll())) await sleep(POLL_MS, this.#closed.signal).catch(() => undefined);
    }
    stopListening();
    this.#isRunning = false;
  }

  /** Returns false if a read failed. */
  async #readAll(): Promise<boolean> {
    const entries = [...this.#tails.values()];
    let isHealthy = true;
    const readNext = async (): Promise<void> => {
      for (let entry = entries.pop(); entry; entry = entries.pop())
        try {
          await (await entry.tail).read(this.#bufferBytes());
        } catch (error) {
          isHealthy = false;
          this.#options.onError(error);
        }
    };
    await Promise.all(Array.from({ length: READS }, readNext));
    return isHealthy;
  }
}
