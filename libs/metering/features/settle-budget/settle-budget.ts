import { NEVER_BEGUN } from '@antiphon/contracts/metering';
import type { CallOutcome, SettleBudgetReply, SettleBudgetRequest } from '@antiphon/contracts/metering';
import type { EndReservations } from '../end-reservations/end-reservations.js';
import type { BudgetLedger } from '../keep-ledger/ledger.js';
import { statusOf } from '../keep-ledger/status-of.js';

export type SettleBudget = (request: SettleBudgetRequest) => Promise<SettleBudgetReply['status']>;

const isUnbegun = (outcome: CallOutcome): boolean =>
  outcome.kind === 'not_dispatched' && outcome.reason === NEVER_BEGUN;

/** Ends a reservation with the outcome of its attempt, once; whoever says it again hears how it has ended. */
export const createSettleBudget =
  (ledger: BudgetLedger, endReservations: Pick<EndReservations, 'takeBack'>): SettleBudget =>
  async ({ workspace, reservationId: id, outcome }) => {
    const reservationId = id.toLowerCase();
    if (isUnbegun(outcome)) return endReservations.takeBack(workspace, reservationId);
    return statusOf(
      await ledger.submit(workspace, { type: 'Settle', reservationId, outcome }),
      reservationId,
    );
  };
