import type { SettleBudgetReply, SettleBudgetRequest } from '@antiphon/contracts/metering';
import { bug } from '@antiphon/kernel';
import type { BudgetLedger } from '../keep-ledger/ledger.js';

export type SettleBudget = (request: SettleBudgetRequest) => Promise<SettleBudgetReply['status']>;

/** Ends a reservation with the outcome of its attempt, once; whoever says it again hears how it has ended. */
export const createSettleBudget =
  (ledger: BudgetLedger): SettleBudget =>
  async ({ workspace, reservationId: id, outcome }) => {
    const reservationId = id.toLowerCase();
    const { status } = await ledger.submit(workspace, { type: 'Settle', reservationId, outcome });
    if (status === 'reserved') throw bug('METERING.NOT_SETTLED', `reservation ${reservationId} stayed open`);
    return status;
  };
