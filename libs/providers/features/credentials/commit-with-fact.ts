import { inTransaction } from '@antiphon/database';
import type { EventStorePg, StreamAppend } from '@antiphon/event-store';
import { bug } from '@antiphon/kernel';
import type pg from 'pg';

/** Where facts and encrypted values are stored, and the category of the facts. */
export interface FactsAndRows {
  readonly pool: pg.Pool;
  readonly store: EventStorePg;
  readonly category: string;
}

/**
 * Commits a change of a stored value together with the facts about it. Returns false if they
 * conflict.
 */
export const commitWithFact = async (
  { pool, store, category }: FactsAndRows,
  workspace: string,
  own: StreamAppend,
  change: (client: pg.ClientBase) => Promise<void>,
): Promise<boolean> => {
  const commit = async (client: pg.ClientBase): Promise<boolean> => {
    await change(client);
    const [outcome] = await store.appendWithin(client, [{ workspace, streams: [own] }]);
    if (!outcome?.ok) throw outcome?.error ?? bug('PROVIDER.NO_OUTCOME', 'an append has no outcome');
    return outcome.result.outcome === 'appended';
  };
  const isAppended = await inTransaction(pool, commit, workspace);
  if (isAppended) store.notifyAppended(category);
  return isAppended;
};
