import { nextEventLoopRound, toAppError, transient } from '@antiphon/kernel';
import type { AppendResult } from '../event-store.port.js';
import type { AppendOutcome } from './append-outcome.js';
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

interface QueuedAppend {
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
  let events = 0;
  let bytes = 0;
  let seen = 0;
  for (const queued of queue) {
    const { exclusiveKeys, events: more, bytes: size } = queued.prepared;
    if (
      batch.length > 0 &&
      (batch.length >= maxRequests || events + more > maxEvents || bytes + size > maxBytes)
    )
      break;
    seen++;
    if (exclusiveKeys.some((key) => usedKeys.has(key))) postponed.push(queued);
    else {
      batch.push(queued);
      events += more;
      bytes += size;
    }
    for (const key of exclusiveKeys) usedKeys.add(key);
  }
  queue.splice(0, seen, ...postponed);
  return batch;
};

const settle = (batch: readonly QueuedAppend[], outcomes: readonly AppendOutcome[]): void =>
  batch.forEach(({ resolve, reject }, index) => {
    const outcome = outcomes[index] as AppendOutcome;
    if (outcome.ok) resolve(outcome.result);
    else reject(outcome.error);
  });

/**
 * Group commit: writes one batch at a time. Requests that arrive during a write share the next
 * batch and so the cost of its commit. The result of `flush` has the outcome of each request. If
 * `flush` rejects, every request of the batch rejects.
 */
export class GroupCommit {
  private readonly queue: QueuedAppend[] = [];
  private queuedBytes = 0;
  private draining: Promise<void> | undefined;
  private isClosed = false;

  constructor(
    private readonly flush: (batch: readonly PreparedAppend[]) => Promise<AppendOutcome[]>,
    private readonly options: GroupCommitOptions,
  ) {}

  append(prepared: PreparedAppend): Promise<AppendResult> {
    return new Promise((resolve, reject) => {
      const refusal = this.refusal();
      if (refusal !== undefined) {
        reject(transient('LOG.UNAVAILABLE', refusal));
        return;
      }
      this.queue.push({ prepared, resolve, reject });
      this.queuedBytes += prepared.bytes;
      this.draining ??= this.drain();
    });
  }

  /** Number of requests that no batch has taken yet. */
  get waiting(): number {
    return this.queue.length;
  }

  /** Rejects later appends, and resolves once every queued append has settled. */
  async close(): Promise<void> {
    this.isClosed = true;
    await this.draining;
  }

  private refusal(): string | undefined {
    if (this.isClosed) return 'the log is closing';
    const { maxQueued, maxQueuedBytes } = this.options;
    const isFull = this.queue.length >= maxQueued || this.queuedBytes > maxQueuedBytes;
    return isFull ? 'too many appends are waiting' : undefined;
  }

  private async drain(): Promise<void> {
    do {
      // Callers whose appends have just settled often append again: wait one round for them.
      await nextEventLoopRound();
      const batch = takeBatch(this.queue, this.options);
      for (const { prepared } of batch) this.queuedBytes -= prepared.bytes;
      try {
        settle(batch, await this.flush(batch.map(({ prepared }) => prepared)));
      } catch (error) {
        for (const { reject } of batch) reject(toAppError(error));
      }
    } while (this.queue.length > 0);
    this.draining = undefined;
  }
}
