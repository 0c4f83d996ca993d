import { Controller, Inject } from '@nestjs/common';
import { z } from 'zod';
import { ModelCallAborted } from '@antiphon/contracts/agent';
import { NEVER_BEGUN, settleBudget } from '@antiphon/contracts/metering';
import type { CallOutcome, SettleBudgetReply, SettleBudgetRequest } from '@antiphon/contracts/metering';
import { isAppError } from '@antiphon/kernel';
import { HandleRequest, defineConsumer } from '@antiphon/messaging';
import { END_RESERVATIONS } from '../metering.tokens.js';
import type { EndReservations } from './end-reservations.js';
import { outcomeOfAborted } from '../ledger/find-outcome.js';

const isNeverStarted = (outcome: CallOutcome): boolean =>
  outcome.kind === 'not_dispatched' && outcome.reason === NEVER_BEGUN;

/**
 * Ends a reservation once with the outcome of its attempt in the log. A request is a notification:
 * the usage that it names charges nothing. A repeat returns the first result.
 */
@Controller()
export class SettleBudget {
  constructor(
    @Inject(END_RESERVATIONS)
    private readonly endReservations: Pick<EndReservations, 'releaseUncited' | 'settleFromLog'>,
  ) {}

  @HandleRequest(settleBudget)
  async handle({ workspace, reservationId: id, outcome }: SettleBudgetRequest): Promise<SettleBudgetReply> {
    const reservationId = id.toLowerCase();
    if (isNeverStarted(outcome))
      return { status: await this.endReservations.releaseUncited(workspace, reservationId) };
    return { status: await this.endReservations.settleFromLog(workspace, reservationId) };
  }
}

// The message may have any version of the event, whose text or cause does not matter here.
const CallAborted = z.object({
  type: z.literal('ModelCallAborted'),
  data: ModelCallAborted.shape.data.omit({ cause: true }),
  workspace: z.string(),
});

/**
 * Settles each aborted attempt by its event, also if the agent that made the call has died. Events
 * are delivered at least once, and the agent sends a request too: the reservation ends once. A
 * completed attempt is settled in its own commit, else by a request or the sweep.
 */
export const settleCalls = defineConsumer({
  durable: 'metering-settle-calls',
  subject: 'evt.*.session.>',
  schema: CallAborted,
  types: ['ModelCallAborted'],
  // Most messages are skipped, and the agent's request arrives first.
  concurrency: 64,
  gatherMs: 200,
  handle: (settle: Pick<SettleBudget, 'handle'>) => async (event) => {
    const { reservationId } = event.data;
    // The status may be `missing`. A reservation made after its call has ended expires, and is
    // looked up then.
    const settled = settle.handle({
      workspace: event.workspace,
      reservationId,
      outcome: outcomeOfAborted(event.data),
    });
    await settled.catch((error: unknown) => {
      // An event that is not in the log, such as one of a replaced history, charges nothing.
      if (!isAppError(error) || error.code !== 'METERING.NOT_IN_LOG') throw error;
    });
  },
});
