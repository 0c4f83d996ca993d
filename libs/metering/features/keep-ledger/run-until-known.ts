import { setTimeout as delay } from 'node:timers/promises';
import type { AppError } from '@antiphon/kernel';
import type { LedgerDecision } from '@antiphon/metering-domain';
import type { LedgerWork } from './plan-batch.js';

type Run = (works: readonly LedgerWork[]) => Promise<readonly LedgerDecision[]>;

const RETRY_MS = 100;
const kindOf = (error: unknown): AppError['kind'] | undefined => (error as Partial<AppError>).kind;

const alone = async (run: Run, works: readonly LedgerWork[]): Promise<readonly LedgerDecision[]> => {
  const decisions: LedgerDecision[] = [];
  for (const work of works) decisions.push(...(await run([work])));
  return decisions;
};

/**
 * Runs a batch again while the database is away for a moment: a commit whose answer was lost is found by its
 * reservation ids, so nothing happens twice. A failure that is no absence is pinned to the command that causes it.
 */
export const runUntilKnown =
  (run: Run, withinMs: number): Run =>
  async (works) => {
    const deadline = performance.now() + withinMs;
    const attempt: Run = async (some) => {
      try {
        return await run(some);
      } catch (error) {
        if (kindOf(error) === 'transient' && performance.now() < deadline) {
          await delay(RETRY_MS);
          return attempt(some);
        }
        if (kindOf(error) === 'transient') throw error;
        if (some.length > 1) return alone(attempt, some);
        return some.map(() => ({ error: error as AppError }));
      }
    };
    return attempt(works);
  };
