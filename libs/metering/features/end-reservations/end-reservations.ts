import type pg from 'pg';
import type { EventStore } from '@antiphon/event-store';
import { NEVER_BEGUN } from '@antiphon/contracts/metering';
import type { CallOutcome, SettleBudgetReply } from '@antiphon/contracts/metering';
import { conflict, isoTime } from '@antiphon/kernel';
import type { Clock } from '@antiphon/kernel';
import type { BudgetLedger } from '../keep-ledger/ledger.js';
import { findOutcome } from './find-outcome.js';
import { statusOf } from '../keep-ledger/status-of.js';
import { openInScope, openLongest, openOne } from './open-reservations.js';
import type { OpenRow } from './open-reservations.js';
import { createRounds } from './shared-rounds.js';

export interface EndReservationsDeps {
  readonly pool: pg.Pool;
  readonly store: EventStore;
  readonly clock: Clock;
  readonly ledger: BudgetLedger;
}

export interface EndReservations {
  /**
   * Ends what has ended in a scope: settles each open reservation whose outcome the log holds, and expires those whose
   * time is over without one. Answers how many ended. Callers that come together share one look that began after them.
   */
  inScope(workspace: string, scopeKey: string): Promise<number>;
  /**
   * Takes back what no call has cited, and answers how the reservation stands then. What its holder believes is not
   * enough: an append whose answer was lost may have begun the call. Throws `METERING.CALL_BEGUN` where it is at work.
   */
  takeBack(workspace: string, reservationId: string): Promise<SettleBudgetReply['status']>;
  /** As `inScope`, for everything that has expired, and for what has been open longest, in every workspace. */
  sweep(): Promise<number>;
}

/** Of one look: more than a process has calls at work; what is left is for the next one. */
const MAX_LOOK = 500;
/** Of those that have not expired, in one sweep: enough for what a driver left that was lost before it could give back. */
const MAX_OLD = 50;
const MAX_AT_ONCE = 8;

/** At most `MAX_AT_ONCE` at work, so that a look does not take every connection of the pool. */
const eachAtOnce = async <T>(items: readonly T[], work: (item: T) => Promise<boolean>): Promise<number> => {
  let next = 0;
  let done = 0;
  const worker = async (): Promise<void> => {
    for (let item = items[next++]; item !== undefined; item = items[next++]) if (await work(item)) done++;
  };
  await Promise.all(Array.from({ length: Math.min(MAX_AT_ONCE, items.length) }, worker));
  return done;
};

const UNBEGUN: CallOutcome = { kind: 'not_dispatched', reason: NEVER_BEGUN };

const takeBack = async (
  { pool, store, ledger }: EndReservationsDeps,
  workspace: string,
  reservationId: string,
): Promise<SettleBudgetReply['status']> => {
  const open = await openOne(pool, workspace, reservationId);
  const found = open ? await findOutcome(store, open) : 'never_begun';
  if (found === 'at_work')
    throw conflict('METERING.CALL_BEGUN', `a call has begun that cites reservation ${reservationId}`);
  const outcome = typeof found === 'string' ? UNBEGUN : found;
  return statusOf(await ledger.submit(workspace, { type: 'Settle', reservationId, outcome }), reservationId);
};

const endOne = async ({ store, ledger }: EndReservationsDeps, open: OpenRow): Promise<boolean> => {
  const { workspace, reservationId } = open;
  const found = await findOutcome(store, open);
  // Until it expires the commit that cites it may still be on its way.
  if (found === 'overtaken' || (found === 'never_begun' && open.expired)) {
    await ledger.submit(workspace, { type: 'Settle', reservationId, outcome: UNBEGUN });
  } else if (typeof found !== 'string')
    await ledger.submit(workspace, { type: 'Settle', reservationId, outcome: found });
  else if (open.expired) await ledger.submit(workspace, { type: 'Expire', reservationId });
  else return false;
  return true;
};

export const createEndReservations = (deps: EndReservationsDeps): EndReservations => {
  const { pool, clock } = deps;
  const end = (open: readonly OpenRow[]): Promise<number> => eachAtOnce(open, (one) => endOne(deps, one));
  const rounds = createRounds(async (name) => {
    const [workspace, scopeKey] = JSON.parse(name) as [string, string];
    return end(await openInScope(pool, workspace, scopeKey, isoTime(clock), MAX_LOOK));
  });
  return {
    inScope: (workspace, scopeKey) => rounds(JSON.stringify([workspace, scopeKey])),
    takeBack: (workspace, reservationId) => takeBack(deps, workspace, reservationId),
    sweep: async () => end(await openLongest(pool, isoTime(clock), MAX_LOOK, MAX_OLD)),
  };
};
