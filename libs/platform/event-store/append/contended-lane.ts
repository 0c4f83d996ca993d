import { sleep, toAppError, transient } from '@antiphon/kernel';
import { CONTENDED } from './append-flush.js';
import type { FlushOutcome } from './append-flush.js';
import type { QueuedAppend } from './group-commit.js';
import type { PreparedAppend } from './prepare-append.js';

/** Time for which a request is tried, ms: the lock timeout of a connection. */
const TRY_WITHIN_MS = 5_000;
/** Delay before the next round when each row was still locked, ms. */
const ROUND_MS = 50;
/** Time after a contention for which further requests of its stream begin in the lane, ms. */
const HOT_MS = 10_000;

interface LaneEntry {
  readonly queued: QueuedAppend;
  readonly until: number;
}

/**
 * Lane for appends whose rows another transaction holds for long, next to the batches, so that
 * other streams do not wait. Each request is tried alone, those of one stream in their order.
 */
export class ContendedLane {
  private entries: LaneEntry[] = [];
  /** Keys of requests that were contended, and until when. */
  private readonly hotKeys = new Map<string, number>();
  private running: Promise<void> | undefined;

  constructor(private readonly flush: (batch: readonly PreparedAppend[]) => Promise<FlushOutcome[]>) {}

  get waiting(): number {
    return this.entries.length;
  }

  get bytes(): number {
    return this.entries.reduce((sum, { queued }) => sum + queued.prepared.bytes, 0);
  }

  /** Returns whether a request must wait here: its stream is locked, or has requests here. */
  claims({ exclusiveKeys }: PreparedAppend): boolean {
    if (this.hotKeys.size === 0 && this.entries.length === 0) return false;
    const now = performance.now();
    for (const [key, until] of this.hotKeys) if (until < now) this.hotKeys.delete(key);
    return (
      exclusiveKeys.some((key) => this.hotKeys.has(key)) ||
      this.entries.some(({ queued }) => sharesKey(queued.prepared, exclusiveKeys))
    );
  }

  /** Adds a request. `isContended` if its row was locked just now. */
  add(queued: QueuedAppend, isContended: boolean): void {
    if (isContended) this.markHot(queued.prepared);
    this.entries.push({ queued, until: performance.now() + TRY_WITHIN_MS });
    this.running ??= this.run();
  }

  /** Resolves once every request here has settled. */
  async drain(): Promise<void> {
    while (this.running) await this.running;
  }

  private markHot({ exclusiveKeys }: PreparedAppend): void {
    const until = performance.now() + HOT_MS;
    for (const key of exclusiveKeys) this.hotKeys.set(key, until);
  }

  private async run(): Promise<void> {
    while (this.entries.length > 0) {
      let isProgress = false;
      for (const entry of this.firstOfEachStream()) isProgress = (await this.tryEntry(entry)) || isProgress;
      if (!isProgress) await sleep(ROUND_MS);
    }
    this.running = undefined;
  }

  private firstOfEachStream(): LaneEntry[] {
    const seen = new Set<string>();
    return this.entries.filter(({ queued: { prepared } }) => {
      const isFirst = !prepared.exclusiveKeys.some((key) => seen.has(key));
      for (const key of prepared.exclusiveKeys) seen.add(key);
      return isFirst;
    });
  }

  /** Returns true when the request has settled. */
  private async tryEntry(entry: LaneEntry): Promise<boolean> {
    const { queued, until } = entry;
    const outcome = await this.attempt(queued.prepared);
    if (outcome === CONTENDED && performance.now() < until) {
      this.markHot(queued.prepared);
      return false;
    }
    this.entries = this.entries.filter((other) => other !== entry);
    if (outcome === CONTENDED) {
      queued.reject(transient('LOG.UNAVAILABLE', 'another transaction locks this stream; try again'));
      return true;
    }
    for (const key of queued.prepared.exclusiveKeys) this.hotKeys.delete(key);
    if (outcome.ok) queued.resolve(outcome.result);
    else queued.reject(outcome.error);
    return true;
  }

  private async attempt(prepared: PreparedAppend): Promise<FlushOutcome> {
    try {
      const [outcome] = await this.flush([prepared]);
      return outcome as FlushOutcome;
    } catch (error) {
      return { ok: false, error: toAppError(error) };
    }
  }
}

const sharesKey = (prepared: PreparedAppend, keys: readonly string[]): boolean =>
  prepared.exclusiveKeys.some((key) => keys.includes(key));
