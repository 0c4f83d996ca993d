import { nextEventLoopRound, toAppError, transient } from '@antiphon/kernel';
import type { AppendResult } from '../event-store.port.js';
import { CONTENDED } from './append-flush.js';
import type { FlushOutcome } from './append-flush.js';
import { ContendedLane } from './contended-lane.js';
import type { PreparedAppend } from './prepare-append.js';

export interface GroupCommitOptions {
  /** Limits of one batch; requests beyond them go into the next batch. */
  readonly maxRequests: number;
  readonly maxEvents: number;
  readonly maxBytes: number;
  /** Limits of the queue. Beyond them `append` rejects with `LOG.UNAVAILABLE` (backpressure). */
  readonly maxQueued: number;
  readonly maxQueuedBytes: number;
}

/** A request that waits for its outcome. */
export interface QueuedAppend {
  readonly prepared: PreparedAppend;
  readonly resolve: (result: AppendResult) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Removes the longest run of requests that fits the limits and shares no key, and returns it. A
 * request that shares a key with an earlier one is postponed to a later batch. So is every request
 * that shares a key with a postponed one, so requests of one stream never change their order.
 */
export const takeBatch = <T extends { readonly prepared: PreparedAppend }>(
  queue: T[],
  { maxRequests, maxEvents, maxBytes }: Pick<GroupCommitOptions, 'maxRequests' | 'maxEvents' | 'maxBytes'>,
): T[] => {
  const batch: T[] = [];
  const postponed: T[] = [];
  const usedKeys = new Set<string>();
  const guardedKeys = new Set<string>();
  let events = 0;
  let bytes = 0;
  let seen = 0;
  for (const queued of queue) {
    const { exclusiveKeys, sharedKeys, events: more, bytes: size } = queued.prepared;
    if (
      batch.length > 0 &&
      (batch.length >= maxRequests || events + more > maxEvents || bytes + size > maxBytes)
    )
      break;
    seen++;
    const hasConflict = exclusiveKeys.some((key) => usedKeys.has(key) || guardedKeys.has(key));
    if (hasConflict || sharedKeys.some((key) => usedKeys.has(key))) postponed.push(queued);
    else {
      batch.push(queued);
      events += more;
      bytes += size;
    }
    for (const key of exclusiveKeys) usedKeys.add(key);
    for (const key of sharedKeys) guardedKeys.add(key);
  }
  queue.splice(0, seen, ...postponed);
  return batch;
};

/**
 * Group commit: writes one batch at a time. Requests that arrive during a write share the next
 * batch and so the cost of its commit. The result of `flush` has the outcome of each request. If
 * `flush` rejects, every request of the batch rejects. Requests whose rows stay locked wait in a
 * lane of their own.
 */
export class GroupCommit {
  private readonly queue: QueuedAppend[] = [];
  private queuedBytes = 0;
  /** Number of requests in the last batch. */
  private lastSize = 0;
  private draining: Promise<void> | undefined;
  private isClosed = false;
  private readonly lane: ContendedLane;

  constructor(
    private readonly flush: (batch: readonly PreparedAppend[]) => Promise<FlushOutcome[]>,
    private readonly options: GroupCommitOptions,
  ) {
    this.lane = new ContendedLane(flush);
  }

  append(prepared: PreparedAppend): Promise<AppendResult> {
    return new Promise((resolve, reject) => {
      const refusal = this.refusal();
      if (refusal !== undefined) {
        reject(transient('LOG.UNAVAILABLE', refusal));
        return;
      }
      const queued = { prepared, resolve, reject };
      if (this.lane.claims(prepared)) {
        this.lane.add(queued, false);
        return;
      }
      this.queue.push(queued);
      this.queuedBytes += prepared.bytes;
      this.draining ??= this.drain();
    });
  }

  /** Number of requests that no batch has taken yet. */
  get waiting(): number {
    return this.queue.length + this.lane.waiting;
  }

  /** Rejects later appends, and resolves once every queued append has settled. */
  async close(): Promise<void> {
    this.isClosed = true;
    await this.draining;
    await this.lane.drain();
  }

  private refusal(): string | undefined {
    if (this.isClosed) return 'the log is closing';
    const { maxQueued, maxQueuedBytes } = this.options;
    const isFull = this.waiting >= maxQueued || this.queuedBytes + this.lane.bytes > maxQueuedBytes;
    return isFull ? 'too many appends are waiting' : undefined;
  }

  private settle(batch: readonly QueuedAppend[], outcomes: readonly FlushOutcome[]): void {
    batch.forEach((queued, index) => {
      const outcome = outcomes[index] as FlushOutcome;
      if (outcome === CONTENDED) this.lane.add(queued, true);
      else if (outcome.ok) queued.resolve(outcome.result);
      else queued.reject(outcome.error);
    });
    if (outcomes.includes(CONTENDED)) this.moveContended();
  }

  /** Moves waiting requests of contended streams to the lane, in their order. */
  private moveContended(): void {
    for (const queued of this.queue.splice(0)) {
      if (!this.lane.claims(queued.prepared)) {
        this.queue.push(queued);
        continue;
      }
      this.queuedBytes -= queued.prepared.bytes;
      this.lane.add(queued, false);
    }
  }

  private async drain(): Promise<void> {
    do {
      // Callers whose appends have just settled often append again: wait one round for them.
      // A caller that was alone last time does not wait.
      if (this.lastSize !== 1 || this.queue.length > 1) await nextEventLoopRound();
      const batch = takeBatch(this.queue, this.options);
      this.lastSize = batch.length;
      for (const { prepared } of batch) this.queuedBytes -= prepared.bytes;
      try {
        this.settle(batch, await this.flush(batch.map(({ prepared }) => prepared)));
      } catch (error) {
        for (const { reject } of batch) reject(toAppError(error));
      }
    } while (this.queue.length > 0);
    this.draining = undefined;
  }
}
