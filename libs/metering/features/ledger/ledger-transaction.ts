import type pg from 'pg';
import { inTransaction } from '@antiphon/database';
import type { AppendOutcome, EventStorePg } from '@antiphon/event-store';
import { bug, conflict, isAppError } from '@antiphon/kernel';
import type { AppError, Ids } from '@antiphon/kernel';
import type { LedgerDecision } from '@antiphon/metering-domain';
import type { LedgerState } from './ledger-rows.js';
import { lockLedger } from './ledger-rows.js';
import {
  decideAll,
  groupByReservation,
  reservationOf,
  scopesOf,
  toAppendRequest,
  toLedgerWrite,
} from './ledger-batch.js';
import type { BatchRules, LedgerWork, ReservationAppend } from './ledger-batch.js';
import { writeLedger } from './ledger-sql.js';

export interface LedgerTransactionDeps {
  readonly pool: pg.Pool;
  readonly store: EventStorePg;
  readonly ids: Ids;
}

const RETRY = 'METERING.BATCH_CHANGED';
const BEHIND = 'METERING.BALANCES_BEHIND';
const codeOf = (error: unknown): string | undefined => (error as Partial<AppError>).code;

interface Attempt {
  readonly decisions: readonly LedgerDecision[];
  readonly appended: boolean;
  /** State that the decisions are based on. */
  readonly state: LedgerState;
}

type Refusals = Map<string, AppError>;
const refusalKey = (workspace: string, id: string): string => `${workspace} ${id}`;

/** Returns the error for events of another transaction whose changes the balances lack. */
const balancesBehind = (id: string): AppError =>
  conflict(BEHIND, `the log has events of reservation ${id} that the balances lack; rebuild them`);

const collectRefusals = (
  outcomes: readonly AppendOutcome[],
  groups: readonly ReservationAppend[],
  refused: Refusals,
): void =>
  outcomes.forEach((outcome, index) => {
    const { workspace, id } = groups[index] as ReservationAppend;
    if (!outcome.ok) refused.set(refusalKey(workspace, id), outcome.error);
    else if (outcome.result.outcome !== 'appended')
      refused.set(refusalKey(workspace, id), balancesBehind(id));
  });

const HOLD_SQL = 'select budget_hold_session($1, $2)';

const callBegun = (work: LedgerWork): AppError =>
  conflict('METERING.CALL_BEGUN', `a call that cites reservation ${reservationOf(work)} has started`);

/**
 * Decides the commands with `lookAgain` again. Until the end of the transaction no event of their
 * sessions can be appended.
 */
const lookAgainIn = async (
  client: pg.ClientBase,
  works: readonly LedgerWork[],
): Promise<readonly (LedgerWork | AppError)[]> => {
  const names = new Set(
    works.flatMap(({ workspace, lookAgain }) => (lookAgain ? `${workspace} ${lookAgain.sessionId}` : [])),
  );
  // In the order in which an append locks them.
  for (const name of [...names].sort()) await client.query(HOLD_SQL, name.split(' '));
  const decided: (LedgerWork | AppError)[] = [];
  for (const work of works) {
    const command = work.lookAgain ? await work.lookAgain.decide() : work.command;
    decided.push(command === null ? callBegun(work) : { ...work, command });
  }
  return decided;
};

/** Decides the works, and returns the errors of those that are errors already. */
const decideRest = (
  state: LedgerState,
  looked: readonly (LedgerWork | AppError)[],
  rules: BatchRules,
): LedgerDecision[] => {
  const rest = looked.filter((work): work is LedgerWork => !isAppError(work));
  const decisions = decideAll(state, rest, rules);
  return looked.map((work) =>
    isAppError(work) ? { error: work } : (decisions[rest.indexOf(work)] as LedgerDecision),
  );
};

const attemptBatch = (
  { pool, store, ids }: LedgerTransactionDeps,
  works: readonly LedgerWork[],
  rules: BatchRules,
  refused: Refusals,
): Promise<Attempt> =>
  inTransaction(pool, async (client) => {
    const reservations = works.flatMap((work) => {
      const id = reservationOf(work);
      return id === undefined ? [] : [{ workspace: work.workspace, id }];
    });
    const scopes = works.flatMap((work) => scopesOf(work, rules));
    const state = await lockLedger(client, scopes, reservations);
    const decisions = decideRest(state, await lookAgainIn(client, works), rules);
    const groups = groupByReservation(works, decisions);
    if (groups.length === 0) return { decisions, appended: false, state };
    await writeLedger(client, toLedgerWrite(state, works, decisions, groups));
    // The append is last, because every other append waits from here to the commit.
    const outcomes = await store.appendWithin(
      client,
      groups.map((group) => toAppendRequest(group, ids)),
    );
    collectRefusals(outcomes, groups, refused);
    if (refused.size > 0) throw conflict(RETRY, 'the log refused a part of this batch');
    return { decisions, appended: true, state };
  });

/** Rounds in which a reservation changed by another process is retried before its command fails. */
const STALE_ROUNDS = 3;
/** Maximum rounds. More mean a corrupt state, not a concurrent change. */
const MAX_ROUNDS = 20;

/** Codes of a reservation that another process has just changed. The next read shows the change. */
const STALE = new Set([BEHIND, 'LOG.VERSION_CONFLICT', 'LOG.EVENT_ID_CONFLICT', 'DATABASE.UNIQUE']);
const isStale = ({ code }: AppError): boolean => STALE.has(code);

/** Fails each command that the log refused, unless another read of its reservation may help. */
const collectErrors = (
  works: readonly LedgerWork[],
  refused: Refusals,
  canRetry: (failure: AppError) => boolean,
  errors: Map<LedgerWork, AppError>,
): void => {
  for (const work of works) {
    const failure = refused.get(refusalKey(work.workspace, reservationOf(work) ?? ''));
    if (failure && !canRetry(failure)) errors.set(work, failure);
  }
};

/**
 * Runs a batch in one transaction: locks the balances in the order of their keys, decides, writes
 * and appends. A command that the log refuses is decided again, or fails alone. Rejects when the
 * database does (`LOG.UNAVAILABLE`, `DATABASE.…`); then nothing or everything was committed.
 * `onCommitted` receives the committed decisions and the state that they are based on.
 */
export const runLedgerBatch = async (
  deps: LedgerTransactionDeps,
  works: readonly LedgerWork[],
  rules: BatchRules,
  onCommitted: (
    state: LedgerState,
    works: readonly LedgerWork[],
    decisions: readonly LedgerDecision[],
  ) => void,
): Promise<LedgerDecision[]> => {
  const errors = new Map<LedgerWork, AppError>();
  for (let round = 1; round <= MAX_ROUNDS; round++) {
    const left = works.filter((work) => !errors.has(work));
    if (left.length === 0) return inOrder(works, [], [], errors);
    const refused: Refusals = new Map();
    try {
      const { decisions, appended, state } = await attemptBatch(deps, left, rules, refused);
      if (appended) deps.store.notifyAppended('budget');
      onCommitted(state, left, decisions);
      return inOrder(works, left, decisions, errors);
    } catch (error) {
      const canRetry = (failure: AppError): boolean => isStale(failure) && round <= STALE_ROUNDS;
      if (codeOf(error) !== RETRY && !canRetry(error as AppError)) throw error;
      collectErrors(left, refused, canRetry, errors);
    }
  }
  throw bug('METERING.BATCH_UNSETTLED', 'a batch of budget commands could not be settled');
};

const inOrder = (
  works: readonly LedgerWork[],
  decided: readonly LedgerWork[],
  decisions: readonly LedgerDecision[],
  errors: ReadonlyMap<LedgerWork, AppError>,
): LedgerDecision[] => {
  const byWork = new Map(decided.map((work, index) => [work, decisions[index] as LedgerDecision]));
  return works.map((work) => {
    const error = errors.get(work);
    return error ? { error } : (byWork.get(work) as LedgerDecision);
  });
};
