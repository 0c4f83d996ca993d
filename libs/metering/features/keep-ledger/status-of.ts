import type { SettleBudgetReply } from '@antiphon/contracts/metering';
import { bug } from '@antiphon/kernel';
import type { LedgerAnswer } from '@antiphon/metering-domain';

type Ended = Extract<LedgerAnswer, { type: 'Settle' | 'Expire' }>;

/** How a reservation stands after it was settled, whoever did so first. */
export const statusOf = ({ status }: Ended, reservationId: string): SettleBudgetReply['status'] => {
  if (status === 'reserved') throw bug('METERING.NOT_SETTLED', `reservation ${reservationId} stayed open`);
  return status;
};
