import { Controller, Inject } from '@nestjs/common';
import { z } from 'zod';
import { ModelCallAborted, ModelCallCompleted } from '@antiphon/contracts/agent';
import { NEVER_BEGUN, settleBudget } from '@antiphon/contracts/metering';
import type { CallOutcome, SettleBudgetReply, SettleBudgetRequest } from '@antiphon/contracts/metering';
import { HandleRequest, defineConsumer } from '@antiphon/messaging';
import { statusOf } from '../ledger/ledger.js';
import type { BudgetLedger } from '../ledger/ledger.js';
import { BUDGET_LEDGER, END_RESERVATIONS } from '../metering.tokens.js';
import type { EndReservations } from './end-reservations.js';
import { outcomeOfCall } from './find-outcome.js';

const isNeverStarted = (outcome: CallOutcome): boolean =>
  outcome.kind === 'not_dispatched' && outcome.reason === NEVER_BEGUN;

/** Ends a reservation once with the outcome of its attempt. A repeat returns the first result. */
@Controller()
export class SettleBudget {
  constructor(
    @Inject(BUDGET_LEDGER) private readonly ledger: BudgetLedger,
    @Inject(END_RESERVATIONS) private readonly endReservations: Pick<EndReservations, 'releaseUncited'>,
  ) {}

  @HandleRequest(settleBudget)
  async handle({ workspace, reservationId: id, outcome }: SettleBudgetRequest): Promise<SettleBudgetReply> {
    const reservationId = id.toLowerCase();
    if (isNeverStarted(outcome))
      return { status: await this.endReservations.releaseUncited(workspace, reservationId) };
    const ended = await this.ledger.submit(workspace, { type: 'Settle', reservationId, outcome });
    return { status: statusOf(ended, reservationId) };
  }
}

const workspace = z.string();
const CallEnded = z.discriminatedUnion('type', [
  ModelCallCompleted.extend({ workspace }),
  ModelCallAborted.extend({ workspace }),
]);

/**
 * Settles each attempt by its event, also if the agent that made the call has died. Events are
 * delivered at least once, and the agent sends a request too: the reservation ends once.
 */
export const settleCalls = defineConsumer({
  durable: 'metering-settle-calls',
  subject: 'evt.*.session.>',
  schema: CallEnded,
  types: ['ModelCallCompleted', 'ModelCallAborted'],
  handle: (settle: Pick<SettleBudget, 'handle'>) => async (event) => {
    const { reservationId } = event.data;
    // The status may be `missing`. A reservation made after its call has ended expires, and is
    // looked up then.
    await settle.handle({ workspace: event.workspace, reservationId, outcome: outcomeOfCall(event) });
  },
});
