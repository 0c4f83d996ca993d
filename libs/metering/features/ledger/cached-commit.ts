import type pg from 'pg';
import {
  ALL_WORKSPACES,
  borrowClient,
  isConnectionLost,
  queryInWorkspace,
  translateDatabaseError,
} from '@antiphon/database';
import { appendSql } from '@antiphon/event-store';
import { failpoint } from '@antiphon/kernel';
import { amountOf } from '@antiphon/metering-domain';
import type { LedgerDecision } from '@antiphon/metering-domain';
import { decideAll, groupByReservation, toAppendRequest, toLedgerWrite } from './ledger-batch.js';
import type { BatchRules, LedgerWork } from './ledger-batch.js';
import { isFinal } from './find-outcome.js';
import type { KnownReservation } from './find-outcome.js';
import { LedgerCache } from './ledger-cache.js';
import type { LedgerState } from './ledger-rows.js';
import { COMMIT_PARAMETERS, FIRST_AFTER_COMMIT, commitValues } from './ledger-sql.js';
import { runLedgerBatch } from './ledger-transaction.js';
import type { LedgerTransactionDeps } from './ledger-transaction.js';

// The append reads a column of the commit, so it runs after it and only if the commit returns a
// row.
const COMMIT_SQL = `select budget_appended(a.outcomes) from budget_commit(${COMMIT_PARAMETERS}) as c (careful),
  lateral ${appendSql(FIRST_AFTER_COMMIT, 'c.careful')} a`;

/**
 * Returns true if the reservation has ended for good, so that the rows could not change the
 * decision.
 */
const isRepeat = (decision: LedgerDecision): boolean =>
  !('error' in decision) &&
  decision.events.length === 0 &&
  decision.answer.type === 'Settle' &&
  (decision.answer.status === 'settled' || decision.answer.status === 'released');

/**
 * Returns true if other balances would not change the decision, as long as `budget_commit` accepts
 * them. So it is for a call without a cap, and for a charge within its bound.
 */
const isFreeOfBalances = (decision: LedgerDecision, { command }: LedgerWork): boolean => {
  if ('error' in decision) return false;
  const { answer, events, reserved } = decision;
  if (events.length === 0 || reserved === null) return isRepeat(decision);
  if (answer.type === 'Reserve')
    return command.type === 'Reserve' && reserved.outputBound === command.request.maxOutputTokens;
  return events.every((event) => {
    if (event.type !== 'BudgetSettled') return event.type === 'BudgetReleased';
    const { tokens, microUsd } = amountOf(event.data);
    return tokens <= reserved.tokens && microUsd <= reserved.microUsd;
  });
};

/**
 * Runs a statement. Returns false if it returns no row or fails. Rejects if the connection broke,
 * because it is unknown then whether the statement was committed.
 */
const returnsRow = async (pool: pg.Pool, query: pg.QueryConfig): Promise<boolean> => {
  const { client, release } = await borrowClient(pool).catch((error: unknown) => {
    throw translateDatabaseError(error);
  });
  try {
    // A batch has commands of several workspaces.
    const { rows } = await queryInWorkspace(client, ALL_WORKSPACES, query);
    release();
    return rows.length > 0;
  } catch (error) {
    const lost = isConnectionLost(error);
    release(lost ? (error as Error) : undefined);
    if (lost) throw translateDatabaseError(error);
    return false;
  }
};

/**
 * `uncached`: the cache cannot decide. `stale`: the balances do not allow the batch, or the log
 * refused it.
 */
type CachedResult = readonly LedgerDecision[] | 'uncached' | 'stale';

/**
 * Commits a batch that was decided on cached rows, in one statement, if the rows allow it.
 * Otherwise nothing was written, and the batch must be decided on the rows. So must a batch with a
 * refusal or a cap, because the balances in the cache may be out of date.
 */
const commitCached = async (
  { pool, store, ids }: LedgerTransactionDeps,
  state: LedgerState,
  works: readonly LedgerWork[],
  rules: BatchRules,
): Promise<CachedResult> => {
  const decisions = decideAll(state, works, rules);
  const groups = groupByReservation(works, decisions);
  if (groups.length === 0) return decisions.every(isRepeat) ? decisions : 'uncached';
  if (!decisions.every((decision, index) => isFreeOfBalances(decision, works[index] as LedgerWork)))
    return 'uncached';
  const appended = store.appendParams(groups.map((group) => toAppendRequest(group, ids)));
  const values = [...commitValues(toLedgerWrite(state, works, decisions, groups)), ...appended];
  return (await returnsRow(pool, { name: 'budget_commit', text: COMMIT_SQL, values })) ? decisions : 'stale';
};

/** Stale results in a row after which the balances are assumed to be at their limits. */
const MAX_STALE = 2;
/** Batches that then read the rows first. */
const READ_FIRST = 8;

/**
 * Runs batches one after another. While the balances leave room, a batch is decided on the cache
 * and takes one round trip. Otherwise a transaction reads the rows first (docs/adr/0162).
 */
export class BatchRunner {
  readonly #cache = new LedgerCache();
  #staleInRow = 0;
  #readFirst = 0;

  constructor(private readonly deps: LedgerTransactionDeps) {}

  async run(works: readonly LedgerWork[], rules: BatchRules): Promise<readonly LedgerDecision[]> {
    await failpoint('metering.batch.taken');
    const decisions = await this.#decideInTurn(works, rules);
    await failpoint('metering.batch.committed');
    return decisions;
  }

  /** Returns a reservation from the cache. */
  cached(workspace: string, reservationId: string): KnownReservation | undefined {
    const known = this.#cache.reservation(workspace, reservationId);
    if (!known || known.status === 'none') return undefined;
    const { sessionId, attempt } = known.reserved;
    const corrected = known.status !== 'reserved' && known.corrected;
    const { status } = known;
    return { workspace, reservationId, sessionId, attempt, status, isFinal: isFinal(status, corrected) };
  }

  /** Runs commands that look at the log again alone, because they wait for other appends. */
  async #decideInTurn(works: readonly LedgerWork[], rules: BatchRules): Promise<readonly LedgerDecision[]> {
    const looking = works.filter(({ lookAgain }) => lookAgain !== undefined);
    if (looking.length === 0 || looking.length === works.length) return this.#decide(works, rules);
    const plain = works.filter(({ lookAgain }) => lookAgain === undefined);
    const decided = new Map<LedgerWork, LedgerDecision>();
    for (const part of [looking, plain]) {
      const decisions = await this.#decide(part, rules);
      part.forEach((work, index) => decided.set(work, decisions[index] as LedgerDecision));
    }
    return works.map((work) => decided.get(work) as LedgerDecision);
  }

  async #decide(works: readonly LedgerWork[], rules: BatchRules): Promise<readonly LedgerDecision[]> {
    try {
      const decided = await this.#tryCached(works, rules);
      if (typeof decided !== 'string') return decided;
      return await runLedgerBatch(this.deps, works, rules, (...committed) => this.#cache.store(...committed));
    } catch (error) {
      // It may be unknown whether the batch was committed.
      this.#cache.clear();
      throw error;
    }
  }

  async #tryCached(works: readonly LedgerWork[], rules: BatchRules): Promise<CachedResult> {
    if (works.some(({ lookAgain }) => lookAgain !== undefined)) return 'uncached';
    if (this.#readFirst > 0) {
      this.#readFirst -= 1;
      return 'uncached';
    }
    const decided = await this.#commitCached(works, rules);
    if (decided !== 'uncached') this.#staleInRow = decided === 'stale' ? this.#staleInRow + 1 : 0;
    if (this.#staleInRow >= MAX_STALE) this.#readFirst = READ_FIRST;
    return decided;
  }

  async #commitCached(works: readonly LedgerWork[], rules: BatchRules): Promise<CachedResult> {
    const state = this.#cache.read(works, rules);
    if (state === null) return 'uncached';
    const decided = await commitCached(this.deps, state, works, rules);
    if (typeof decided === 'string') return decided;
    this.#cache.store(state, works, decided);
    if (decided.some((decision) => 'events' in decision && decision.events.length > 0))
      this.deps.store.notifyAppended('budget');
    return decided;
  }
}
