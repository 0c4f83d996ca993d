import { NEVER_BEGUN } from '@antiphon/contracts/metering';
import type { CallOutcome, SettleBudgetReply } from '@antiphon/contracts/metering';
import type { EventStore } from '@antiphon/event-store';
import { conflict, createCoalescer, isAppError, isoTime } from '@antiphon/kernel';
import type { Clock } from '@antiphon/kernel';
import type pg from 'pg';
import { statusOf } from '../ledger/ledger.js';
import type { BudgetLedger } from '../ledger/ledger.js';
import type { LookAgain } from '../ledger/ledger-batch.js';
import { findOutcome, findReservation, openInScope, openLongest, openOne } from '../ledger/find-outcome.js';
import type { CallState, OpenReservation, OpenRow } from '../ledger/find-outcome.js';

export interface EndReservationsDeps {
  readonly pool: pg.Pool;
  readonly store: EventStore;
  readonly clock: Clock;
  readonly ledger: BudgetLedger;
}

export interface EndReservations {
  /**
   * Settles each open reservation of a scope whose outcome is in the log, and expires overdue ones
   * without an outcome. Returns how many ended. Concurrent callers share one run that began after
   * their calls.
   */
  inScope(workspace: string, scopeKey: string): Promise<number>;
  /**
   * Releases a reservation that no call cites, and returns its status. The log decides, not the
   * holder: an append whose response was lost may have started the call. Throws
   * `METERING.CALL_BEGUN` if the call is running.
   */
  releaseUncited(workspace: string, reservationId: string): Promise<SettleBudgetReply['status']>;
  /**
   * Settles a reservation with the outcome of its attempt in the log, and returns its status.
   * Throws `METERING.NOT_IN_LOG` (conflict) if the log has no end of the attempt.
   */
  settleFromLog(workspace: string, reservationId: string): Promise<SettleBudgetReply['status']>;
  /** Ends expired and for the oldest open reservations of every workspace. */
  sweep(): Promise<number>;
}

/** Maximum reservations of one run. More wait for the next run. */
const MAX_PER_RUN = 500;
/** Maximum reservations of one sweep that have not expired, such as those of a lost driver. */
const MAX_UNEXPIRED = 50;
const MAX_CONCURRENT = 8;

/**
 * Runs `work` for each item with bounded concurrency, so that it leaves connections in the pool.
 * Returns how many returned true.
 */
const countConcurrently = async <T>(
  items: readonly T[],
  work: (item: T) => Promise<boolean>,
): Promise<number> => {
  let next = 0;
  let done = 0;
  const worker = async (): Promise<void> => {
    for (let item = items[next++]; item !== undefined; item = items[next++]) if (await work(item)) done++;
  };
  await Promise.all(Array.from({ length: Math.min(MAX_CONCURRENT, items.length) }, worker));
  return done;
};

const NOT_STARTED: CallOutcome = { kind: 'not_dispatched', reason: NEVER_BEGUN };

/** Looks at the log in the transaction of a release, in which no start of a call can commit. */
const lookAgain = (store: EventStore, open: OpenReservation): LookAgain => ({
  sessionId: open.sessionId,
  decide: async () => {
    const found: CallOutcome | CallState = await findOutcome(store, open);
    if (found === 'running') return null;
    const outcome = typeof found === 'string' ? NOT_STARTED : found;
    return { type: 'Settle', reservationId: open.reservationId, outcome };
  },
});

const release = ({ store, ledger }: EndReservationsDeps, open: OpenReservation) =>
  ledger.submit(
    open.workspace,
    { type: 'Settle', reservationId: open.reservationId, outcome: NOT_STARTED },
    lookAgain(store, open),
  );

const settleFromLog = async (
  { pool, store, ledger }: EndReservationsDeps,
  workspace: string,
  reservationId: string,
): Promise<SettleBudgetReply['status']> => {
  const cached = ledger.cached(workspace, reservationId);
  // The agent's commit settles most calls, which the cache does not learn.
  const known = cached?.isFinal ? cached : await findReservation(pool, workspace, reservationId);
  if (!known) return 'missing';
  if (known.isFinal && known.status !== 'reserved') return known.status;
  const found = await findOutcome(store, known);
  if (typeof found !== 'string') {
    const ended = await ledger.submit(workspace, { type: 'Settle', reservationId, outcome: found });
    return statusOf(ended, reservationId);
  }
  if (known.status !== 'reserved') return known.status;
  throw conflict('METERING.NOT_IN_LOG', `the log has no end of the attempt of reservation ${reservationId}`);
};

const releaseUncited = async (
  deps: EndReservationsDeps,
  workspace: string,
  reservationId: string,
): Promise<SettleBudgetReply['status']> => {
  const { pool, store, ledger } = deps;
  const open = await openOne(pool, workspace, reservationId);
  const found = open ? await findOutcome(store, open) : 'never_started';
  if (found === 'running')
    throw conflict('METERING.CALL_BEGUN', `a call that cites reservation ${reservationId} has started`);
  if (open && typeof found === 'string') return statusOf(await release(deps, open), reservationId);
  const outcome = typeof found === 'string' ? NOT_STARTED : found;
  return statusOf(await ledger.submit(workspace, { type: 'Settle', reservationId, outcome }), reservationId);
};

/** Returns false if a call that cites the reservation started in the meantime. */
const releaseUnlessBegun = async (deps: EndReservationsDeps, open: OpenRow): Promise<boolean> => {
  try {
    await release(deps, open);
    return true;
  } catch (error) {
    if (isAppError(error) && error.code === 'METERING.CALL_BEGUN') return false;
    throw error;
  }
};

const endOne = async (deps: EndReservationsDeps, open: OpenRow): Promise<boolean> => {
  const { store, ledger } = deps;
  const { workspace, reservationId } = open;
  const found = await findOutcome(store, open);
  // Until it expires, a commit that cites it may be in flight.
  if (found === 'superseded' || (found === 'never_started' && open.expired))
    return releaseUnlessBegun(deps, open);
  if (typeof found !== 'string')
    await ledger.submit(workspace, { type: 'Settle', reservationId, outcome: found });
  else if (open.expired) await ledger.submit(workspace, { type: 'Expire', reservationId });
  else return false;
  return true;
};

export const createEndReservations = (deps: EndReservationsDeps): EndReservations => {
  const { pool, clock } = deps;
  const end = (open: readonly OpenRow[]): Promise<number> =>
    countConcurrently(open, (one) => endOne(deps, one));
  const endInScope = createCoalescer(async (name) => {
    const [workspace, scopeKey] = JSON.parse(name) as [string, string];
    return end(await openInScope(pool, workspace, scopeKey, isoTime(clock), MAX_PER_RUN));
  });
  return {
    inScope: (workspace, scopeKey) => endInScope(JSON.stringify([workspace, scopeKey])),
    settleFromLog: (workspace, reservationId) => settleFromLog(deps, workspace, reservationId),
    releaseUncited: (workspace, reservationId) => releaseUncited(deps, workspace, reservationId),
    sweep: async () => end(await openLongest(pool, isoTime(clock), MAX_PER_RUN, MAX_UNEXPIRED)),
  };
};
