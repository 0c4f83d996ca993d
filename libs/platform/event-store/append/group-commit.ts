import { setImmediate as nextTurn } from 'node:timers/promises';
import { toAppError, transient } from '@antiphon/kernel';
import type { AppendOutcome } from './append-outcome.js';
import type { AppendResult } from '../event-store.port.js';
import type { PreparedAppend } from './prepare-append.js';

export interface GroupCommitOptions {
  /** Bounds of one batch; what does not fit goes into the next. */
  readonly maxRequests: number;
  readonly maxEvents: number;
  readonly maxBytes: number;
  /** What may wait; beyond it `append` refuses with LOG.UNAVAILABLE. */
  readonly maxQueued: number;
  readonly maxQueuedBytes: number;
}

interface Waiting {
  readonly prepared: PreparedAppend;
  readonly resolve: (result: AppendResult) => void;
  readonly reject: (error: unknown) => void;
}

export interface GroupCommit {
  append(prepared: PreparedAppend): Promise<AppendResult>;
  /** Requests that no batch has taken yet. */
  waiting(): number;
  /** Resolves once everything that waits has been answered; later appends are refused. */
  close(): Promise<void>;
}

/**
 * Takes the longest run of requests that fits the bounds and shares nothing. A request that shares a stream
 * (or an id, or a key) with one before it waits for the next batch, and so does all that shares something with it.
 */
export const takeBatch = <T extends { readonly prepared: PreparedAppend }>(
  queue: T[],
  { maxRequests, maxEvents, maxBytes }: Pick<GroupCommitOptions, 'maxRequests' | 'maxEvents' | 'maxBytes'>,
): T[] => {
  const batch: T[] = [];
  const left: T[] = [];
  const named = new Set<string>();
  let events = 0;
  let bytes = 0;
  let seen = 0;
  for (const waiting of queue) {
    const { claims, events: more, bytes: size } = waiting.prepared;
    if (
      batch.length > 0 &&
      (batch.length >= maxRequests || events + more > maxEvents || bytes + size > maxBytes)
    )
      break;
    seen++;
    if (claims.some((claim) => named.has(claim))) left.push(waiting);
    else {
      batch.push(waiting);
      events += more;
      bytes += size;
    }
    for (const claim of claims) named.add(claim);
  }
  queue.splice(0, seen, ...left);
  return batch;
};

/**
 * One batch at a time: what arrives while one is on its way goes together in the next, so that the cost of a
 * commit is shared by all who wait for it. `flush` answers each request's outcome, or rejects for all.
 */
export const createGroupCommit = (
  flush: (batch: readonly PreparedAppend[]) => Promise<AppendOutcome[]>,
  options: GroupCommitOptions,
): GroupCommit => {
  const queue: Waiting[] = [];
  let queuedBytes = 0;
  let running: Promise<void> | undefined;
  let closed = false;

  const settle = (batch: readonly Waiting[], outcomes: readonly AppendOutcome[]): void =>
    batch.forEach(({ resolve, reject }, index) => {
      const outcome = outcomes[index] as AppendOutcome;
      if (outcome.ok) resolve(outcome.result);
      else reject(outcome.error);
    });

  const drain = async (): Promise<void> => {
    do {
      // One turn of the event loop: those who were just answered, and whoever else is about to append, come along.
      await nextTurn();
      const batch = takeBatch(queue, options);
      for (const { prepared } of batch) queuedBytes -= prepared.bytes;
      try {
        settle(batch, await flush(batch.map(({ prepared }) => prepared)));
      } catch (error) {
        for (const { reject } of batch) reject(toAppError(error));
      }
    } while (queue.length > 0);
    running = undefined;
  };

  return {
    append: (prepared) =>
      new Promise((resolve, reject) => {
        const full = queue.length >= options.maxQueued || queuedBytes > options.maxQueuedBytes;
        if (closed || full) {
          reject(
            transient('LOG.UNAVAILABLE', closed ? 'the log is closing' : 'too many appends are waiting'),
          );
          return;
        }
        queue.push({ prepared, resolve, reject });
        queuedBytes += prepared.bytes;
        running ??= drain();
      }),
    waiting: () => queue.length,
    close: async () => {
      closed = true;
      await running;
    },
  };
};
