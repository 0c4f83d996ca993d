import { failpoint } from '@antiphon/kernel';
import type { LedgerDecision, LedgerRules } from '@antiphon/metering-domain';
import { commitRemembered } from './commit-remembered.js';
import type { Remembered } from './commit-remembered.js';
import { createLedgerMemory } from './ledger-memory.js';
import { runLedgerBatch } from './ledger-transaction.js';
import type { LedgerTransactionDeps } from './ledger-transaction.js';
import type { LedgerWork } from './plan-batch.js';

/** Out of date this often in a row, and another process is at the same balances: */
const MAX_STALE = 2;
/** then so many batches read the rows first. */
const READ_FIRST = 8;

/**
 * Carries out batches, one after another: on what is remembered, in one round trip, while this process is alone at its
 * balances; else in a transaction that reads them first (docs/adr/0040).
 */
export const createRunBatch = (deps: LedgerTransactionDeps) => {
  const memory = createLedgerMemory();
  let stale = 0;
  let readFirst = 0;

  const onMemory = async (works: readonly LedgerWork[], rules: LedgerRules): Promise<Remembered> => {
    const state = memory.recall(works, rules);
    if (state === null) return 'unsure';
    const decided = await commitRemembered(deps, state, works, rules);
    if (typeof decided === 'string') return decided;
    memory.remember(state, works, decided);
    if (decided.some((decision) => 'events' in decision && decision.events.length > 0))
      deps.store.notifyAppended();
    return decided;
  };

  const attempt = async (works: readonly LedgerWork[], rules: LedgerRules): Promise<Remembered> => {
    if (readFirst > 0) {
      readFirst -= 1;
      return 'unsure';
    }
    const decided = await onMemory(works, rules);
    if (decided !== 'unsure') stale = decided === 'stale' ? stale + 1 : 0;
    if (stale >= MAX_STALE) readFirst = READ_FIRST;
    return decided;
  };

  const run = async (
    works: readonly LedgerWork[],
    rules: LedgerRules,
  ): Promise<readonly LedgerDecision[]> => {
    try {
      const decided = await attempt(works, rules);
      if (typeof decided !== 'string') return decided;
      return await runLedgerBatch(deps, works, rules, memory.remember);
    } catch (error) {
      // Whether it was committed may be unknown.
      memory.forget();
      throw error;
    }
  };
  return async (works: readonly LedgerWork[], rules: LedgerRules): Promise<readonly LedgerDecision[]> => {
    await failpoint('metering.batch.taken');
    const decided = await run(works, rules);
    await failpoint('metering.batch.committed');
    return decided;
  };
};
