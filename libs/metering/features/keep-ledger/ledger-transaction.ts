import type pg from 'pg';
import { inTransaction } from '@antiphon/database';
import type { AppendOutcome, EventStorePg } from '@antiphon/event-store';
import { bug, conflict } from '@antiphon/kernel';
import type { AppError, Ids } from '@antiphon/kernel';
import type { LedgerDecision, LedgerRules } from '@antiphon/metering-domain';
import type { LedgerState } from './ledger-rows.js';
import { lockLedger } from './lock-ledger.js';
import { appendOf, decideAll, groupByReservation, reservationOf, scopesOf, writeOf } from './plan-batch.js';
import type { LedgerWork, ReservationAppend } from './plan-batch.js';
import { writeLedger } from './write-ledger.js';

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
  /** What was decided on. */
  readonly state: LedgerState;
}

type Refusals = Map<string, AppError>;
const refusalKey = (workspace: string, id: string): string => `${workspace} ${id}`;

/** Written by another transaction, whose changes are not in what this one has read: they must not be made twice. */
const behind = (id: string): AppError =>
  conflict(BEHIND, `the log knows more of reservation ${id} than the balances do; rebuild them`);

const noteRefusals = (
  outcomes: readonly AppendOutcome[],
  groups: readonly ReservationAppend[],
  refused: Refusals,
): void =>
  outcomes.forEach((outcome, index) => {
    const { workspace, id } = groups[index] as ReservationAppend;
    if (!outcome.ok) refused.set(refusalKey(workspace, id), outcome.error);
    else if (outcome.result.outcome !== 'appended') refused.set(refusalKey(workspace, id), behind(id));
  });

const attemptBatch = (
  { pool, store, ids }: LedgerTransactionDeps,
  works: readonly LedgerWork[],
  rules: LedgerRules,
  refused: Refusals,
): Promise<Attempt> =>
  inTransaction(pool, async (client) => {
    const reservations = works.flatMap((work) => {
      const id = reservationOf(work);
      return id === undefined ? [] : [{ workspace: work.workspace, id }];
    });
    const scopes = works.flatMap((work) => scopesOf(work, rules));
    const state = await lockLedger(client, scopes, reservations);
    const decisions = decideAll(state, works, rules);
    const groups = groupByReservation(works, decisions);
    if (groups.length === 0) return { decisions, appended: false, state };
    await writeLedger(client, writeOf(state, works, decisions, groups));
    // Last, since every other append waits from here to the commit.
    const outcomes = await store.appendWithin(
      client,
      groups.map((group) => appendOf(group, ids)),
    );
    noteRefusals(outcomes, groups, refused);
    if (refused.size > 0) throw conflict(RETRY, 'the log refused a part of this batch');
    return { decisions, appended: true, state };
  });

/** Rounds in which a reservation may turn out to have been changed elsewhere before its command fails. */
const PATIENT_ROUNDS = 3;
/** More rounds than this mean that something is wrong with the state, not with one reservation. */
const MAX_ROUNDS = 20;

/** A reservation that another process has just made or ended: its row tells how, at the next look. */
const STALE = new Set([BEHIND, 'LOG.VERSION_CONFLICT', 'LOG.EVENT_ID_CONFLICT', 'DATABASE.UNIQUE']);
const isStale = ({ code }: AppError): boolean => STALE.has(code);

/** A command that the log refused fails, unless another look at its reservation may help. */
const noteErrors = (
  works: readonly LedgerWork[],
  refused: Refusals,
  mayBeStale: (failure: AppError) => boolean,
  errors: Map<LedgerWork, AppError>,
): void => {
  for (const work of works) {
    const failure = refused.get(refusalKey(work.workspace, reservationOf(work) ?? ''));
    if (failure && !mayBeStale(failure)) errors.set(work, failure);
  }
};

/**
 * Carries out a batch in one transaction: balances locked in the order of their keys, decided, written, appended.
 * What the log refuses is decided anew, or fails alone, and the rest goes on without it.
 * Rejects when the database does (`LOG.UNAVAILABLE`, `DATABASE.…`); then nothing, or everything, was committed.
 * `onDecided` learns what was committed, and on which state it was decided.
 */
export const runLedgerBatch = async (
  deps: LedgerTransactionDeps,
  works: readonly LedgerWork[],
  rules: LedgerRules,
  onDecided: (state: LedgerState, works: readonly LedgerWork[], decisions: readonly LedgerDecision[]) => void,
): Promise<LedgerDecision[]> => {
  const errors = new Map<LedgerWork, AppError>();
  for (let round = 1; round <= MAX_ROUNDS; round++) {
    const left = works.filter((work) => !errors.has(work));
    if (left.length === 0) return inOrder(works, [], [], errors);
    const refused: Refusals = new Map();
    try {
      const { decisions, appended, state } = await attemptBatch(deps, left, rules, refused);
      if (appended) deps.store.notifyAppended();
      onDecided(state, left, decisions);
      return inOrder(works, left, decisions, errors);
    } catch (error) {
      const mayBeStale = (failure: AppError): boolean => isStale(failure) && round <= PATIENT_ROUNDS;
      if (codeOf(error) !== RETRY && !mayBeStale(error as AppError)) throw error;
      noteErrors(left, refused, mayBeStale, errors);
    }
  }
  throw bug('METERING.BATCH_UNSETTLED', 'a batch of budget commands could not be carried out');
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
