import type { AppError } from '@antiphon/kernel';
import { createWakeSignal, nextEventLoopRound, sleep, toAppError, transient } from '@antiphon/kernel';
import type { LedgerDecision } from '@antiphon/metering-domain';
import type { LedgerWork } from './ledger-batch.js';

type RunBatch = (works: readonly LedgerWork[]) => Promise<readonly LedgerDecision[]>;

const RETRY_MS = 100;
const kindOf = (error: unknown): AppError['kind'] | undefined => (error as Partial<AppError>).kind;

const runOneByOne = async (
  run: RunBatch,
  works: readonly LedgerWork[],
): Promise<readonly LedgerDecision[]> => {
  const decisions: LedgerDecision[] = [];
  for (const work of works) decisions.push(...(await run([work])));
  return decisions;
};

/**
 * Retries a batch for `withinMs` while the database is away. A commit whose response was lost is
 * found by its reservation ids, so nothing happens twice. After any other failure each command runs
 * alone, so that only its cause fails.
 */
export const retryBatch =
  (run: RunBatch, withinMs: number): RunBatch =>
  async (works) => {
    const deadline = performance.now() + withinMs;
    const attempt: RunBatch = async (some) => {
      try {
        return await run(some);
      } catch (error) {
        if (kindOf(error) === 'transient' && performance.now() < deadline) {
          await sleep(RETRY_MS);
          return attempt(some);
        }
        if (kindOf(error) === 'transient') throw error;
        if (some.length > 1) return runOneByOne(attempt, some);
        return some.map(() => ({ error: error as AppError }));
      }
    };
    return attempt(works);
  };

export type Decided = Exclude<LedgerDecision, { error: unknown }>;

export interface LedgerQueueOptions {
  /** Maximum commands of one transaction. */
  readonly maxBatch: number;
  /** Maximum commands that wait. Beyond it `submit` refuses with `METERING.BUSY` (transient). */
  readonly maxQueued: number;
  /** Time that settlements wait for another command, to share its commit, in ms. */
  readonly settleWithinMs: number;
}

interface Waiting {
  readonly work: LedgerWork;
  readonly resolve: (decided: Decided) => void;
  readonly reject: (error: unknown) => void;
}

/** Orders commands that free budget before those that reserve it. Array.sort is stable. */
const rank = ({ work }: Waiting): number => (work.command.type === 'Reserve' ? 1 : 0);
const isUrgent = ({ command }: LedgerWork): boolean => command.type !== 'Settle';

const settle = (batch: readonly Waiting[], decisions: readonly LedgerDecision[]): void =>
  batch.forEach(({ resolve, reject }, index) => {
    const decision = decisions[index] as LedgerDecision;
    if ('error' in decision) reject(decision.error);
    else resolve(decision);
  });

/**
 * Runs one batch at a time, because two transactions of a process would only wait for each other's
 * balances. Commands that arrive during a batch share the next commit. Settlements have no waiting
 * caller, so they share the commit of the next other command if one arrives soon. This shortens the
 * queue of commits in the log.
 */
export class LedgerQueue {
  readonly #queue: Waiting[] = [];
  readonly #signal = createWakeSignal();
  #running: Promise<void> | undefined;
  #isClosed = false;
  /** True while a batch of settlements waits for another command. */
  #isDelaying = false;

  constructor(
    private readonly run: RunBatch,
    private readonly options: LedgerQueueOptions,
  ) {}

  /**
   * Resolves with the decision once it is committed. Rejects with the rule or the failure that
   * stopped it.
   */
  submit(work: LedgerWork): Promise<Decided> {
    const { maxBatch, maxQueued } = this.options;
    return new Promise((resolve, reject) => {
      if (this.#isClosed || this.#queue.length >= maxQueued) {
        const message = this.#isClosed
          ? 'metering is stopping'
          : 'too many calls are waiting for their budget';
        reject(transient('METERING.BUSY', message));
        return;
      }
      this.#queue.push({ work, resolve, reject });
      if (this.#isDelaying && (isUrgent(work) || this.#queue.length >= maxBatch)) this.#signal.wake();
      this.#running ??= this.#drain();
    });
  }

  /** Decides the waiting commands, then refuses further ones. */
  async close(): Promise<void> {
    this.#isClosed = true;
    if (this.#isDelaying) this.#signal.wake();
    await this.#running;
  }

  async #drain(): Promise<void> {
    do {
      // Callers that were just answered may submit their next command in this round.
      await nextEventLoopRound();
      await this.#delaySettlements();
      const batch = this.#queue.splice(0, this.options.maxBatch).sort((a, b) => rank(a) - rank(b));
      try {
        settle(batch, await this.run(batch.map(({ work }) => work)));
      } catch (error) {
        for (const { reject } of batch) reject(toAppError(error));
      }
    } while (this.#queue.length > 0);
    this.#running = undefined;
  }

  async #delaySettlements(): Promise<void> {
    const isFull = this.#queue.length >= this.options.maxBatch;
    if (this.#isClosed || isFull || this.#queue.some(({ work }) => isUrgent(work))) return;
    this.#isDelaying = true;
    await this.#signal.wait(this.options.settleWithinMs);
    this.#isDelaying = false;
  }
}
