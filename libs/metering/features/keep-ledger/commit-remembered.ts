import type pg from 'pg';
import { borrowClient, isConnectionLost, translateDatabaseError } from '@antiphon/database';
import { appendSql } from '@antiphon/event-store';
import type { Balance, LedgerDecision, LedgerRules } from '@antiphon/metering-domain';
import type { LedgerState } from './ledger-rows.js';
import type { LedgerTransactionDeps } from './ledger-transaction.js';
import { appendOf, decideAll, groupByReservation, writeOf } from './plan-batch.js';
import type { LedgerWork } from './plan-batch.js';
import { WRITE_PARAMETERS, writeParams } from './write-ledger.js';

interface Expected {
  readonly workspace: string;
  readonly key: string;
  readonly balance: Balance;
}

const EXPECTED_PARAMETERS = 7;
const FIRST_OF_APPEND = EXPECTED_PARAMETERS + WRITE_PARAMETERS + 1;
const COMMIT_PARAMETERS = Array.from({ length: FIRST_OF_APPEND - 1 }, (_, i) => `$${i + 1}`).join(', ');
// The append takes a column of the commit, so it runs after it and only if the commit answers a row.
const COMMIT_SQL = `select budget_appended(a.outcomes) from budget_commit(${COMMIT_PARAMETERS}) as c (careful),
  lateral ${appendSql(FIRST_OF_APPEND, 'c.careful')} a`;

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

const expectedOf = (state: LedgerState): Expected[] =>
  [...state]
    .flatMap(([workspace, { balances }]) =>
      [...balances].map(([key, balance]): Expected => ({ workspace, key, balance })),
    )
    .sort((a, b) => compare(a.workspace, b.workspace) || compare(a.key, b.key));

const expectedParams = (expected: readonly Expected[]): unknown[] => [
  expected.map(({ workspace }) => workspace),
  expected.map(({ key }) => key),
  expected.map(({ balance }) => balance.reservedTokens),
  expected.map(({ balance }) => balance.settledTokens),
  expected.map(({ balance }) => balance.reservedMicroUsd),
  expected.map(({ balance }) => balance.settledMicroUsd),
  expected.map(({ balance }) => balance.frozenBy),
];

/** Nothing to write, and nothing that another look at the rows could change: each reservation has ended for good. */
const isRepeat = (decision: LedgerDecision): boolean =>
  !('error' in decision) &&
  decision.events.length === 0 &&
  decision.answer.type === 'Settle' &&
  (decision.answer.status === 'settled' || decision.answer.status === 'released');

/** Runs a statement; false when it answers no row, or fails. Rejects when nobody knows whether it was carried out. */
const answersRow = async (pool: pg.Pool, query: pg.QueryConfig): Promise<boolean> => {
  const { client, release } = await borrowClient(pool).catch((error: unknown) => {
    throw translateDatabaseError(error);
  });
  try {
    const { rows } = await client.query(query);
    release();
    return rows.length > 0;
  } catch (error) {
    const lost = isConnectionLost(error);
    release(lost ? (error as Error) : undefined);
    if (lost) throw translateDatabaseError(error);
    return false;
  }
};

/** `unsure`: memory alone cannot tell. `stale`: the rows are others by now, or the log refused the batch. */
export type Remembered = readonly LedgerDecision[] | 'unsure' | 'stale';

/**
 * Commits a batch that was decided on remembered rows, in one statement, if they are still what they were.
 * Otherwise nothing was written, and it has to be decided again on the rows themselves.
 * Rejects when the connection broke, so that whether it was committed is unknown.
 */
export const commitRemembered = async (
  { pool, store, ids }: LedgerTransactionDeps,
  state: LedgerState,
  works: readonly LedgerWork[],
  rules: LedgerRules,
): Promise<Remembered> => {
  const decisions = decideAll(state, works, rules);
  const groups = groupByReservation(works, decisions);
  if (groups.length === 0) return decisions.every(isRepeat) ? decisions : 'unsure';
  const appended = store.appendParams(groups.map((group) => appendOf(group, ids)));
  const written = writeParams(writeOf(state, works, decisions, groups));
  const values = [...expectedParams(expectedOf(state)), ...written, ...appended];
  return (await answersRow(pool, { name: 'budget_commit', text: COMMIT_SQL, values })) ? decisions : 'stale';
};
