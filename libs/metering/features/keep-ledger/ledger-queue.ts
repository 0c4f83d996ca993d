import { setImmediate as nextTurn } from 'node:timers/promises';
import { createWakeSignal, toAppError, transient } from '@antiphon/kernel';
import type { LedgerDecision } from '@antiphon/metering-domain';
import type { LedgerWork } from './plan-batch.js';

export type Decided = Exclude<LedgerDecision, { error: unknown }>;

export interface LedgerQueueOptions {
  /** Commands of one transaction at most. */
  readonly maxBatch: number;
  /** Commands that may wait; beyond it `submit` refuses with `METERING.BUSY` (transient). */
  readonly maxQueued: number;
  /** How long settlements wait for a command that somebody waits for, to share its commit, in ms. */
  readonly settleWithinMs: number;
}

export interface LedgerQueue {
  /** Answers what was decided, once it is committed; rejects with the rule or the failure that stopped it. */
  submit(work: LedgerWork): Promise<Decided>;
  /** Answers what waits, then refuses. */
  close(): Promise<void>;
}

interface Waiting {
  readonly work: LedgerWork;
  readonly resolve: (decided: Decided) => void;
  readonly reject: (error: unknown) => void;
}

/** What frees budget goes before what takes it. Array.sort is stable, so each kind keeps its order of arrival. */
const rank = ({ work }: Waiting): number => (work.command.type === 'Reserve' ? 1 : 0);

const answer = (batch: readonly Waiting[], decisions: readonly LedgerDecision[]): void =>
  batch.forEach(({ resolve, reject }, index) => {
    const decision = decisions[index] as LedgerDecision;
    if ('error' in decision) reject(decision.error);
    else resolve(decision);
  });

/**
 * One batch at a time: every command touches the day's balance, so that two transactions of one process would only
 * wait for each other. What arrives while one is on its way goes together in the next and shares its commit.
 * Settlements, for which nobody waits, share the commit of the next command of another kind if one comes soon: the
 * end of a turn would otherwise stand in the way of the next one, since all appends of the log commit in a row.
 */
export const createLedgerQueue = (
  run: (works: readonly LedgerWork[]) => Promise<readonly LedgerDecision[]>,
  { maxBatch, maxQueued, settleWithinMs }: LedgerQueueOptions,
): LedgerQueue => {
  const queue: Waiting[] = [];
  let running: Promise<void> | undefined;
  let closed = false;
  const signal = createWakeSignal();
  /** A batch of settlements waits just now. */
  let waiting = false;
  const isUrgent = ({ command }: LedgerWork): boolean => command.type !== 'Settle';

  const letSettlementsWait = async (): Promise<void> => {
    if (closed || queue.length >= maxBatch || queue.some(({ work }) => isUrgent(work))) return;
    waiting = true;
    await signal.wait(settleWithinMs);
    waiting = false;
  };
  const drain = async (): Promise<void> => {
    do {
      // One turn of the event loop: whoever was just answered, and whoever else is about to ask, comes along.
      await nextTurn();
      await letSettlementsWait();
      const batch = queue.splice(0, maxBatch).sort((a, b) => rank(a) - rank(b));
      try {
        answer(batch, await run(batch.map(({ work }) => work)));
      } catch (error) {
        for (const { reject } of batch) reject(toAppError(error));
      }
    } while (queue.length > 0);
    running = undefined;
  };

  return {
    submit: (work) =>
      new Promise((resolve, reject) => {
        if (closed || queue.length >= maxQueued) {
          const message = closed ? 'metering is stopping' : 'too many calls are waiting for their budget';
          reject(transient('METERING.BUSY', message));
          return;
        }
        queue.push({ work, resolve, reject });
        if (waiting && (isUrgent(work) || queue.length >= maxBatch)) signal.wake();
        running ??= drain();
      }),
    close: async () => {
      closed = true;
      if (waiting) signal.wake();
      await running;
    },
  };
};
