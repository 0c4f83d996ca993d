import { z } from 'zod';
import { ModelCallAborted, ModelCallCompleted } from '@antiphon/contracts/agent';
import { defineConsumer } from '@antiphon/messaging';
import { outcomeOfCall } from '../end-reservations/outcome-of-call.js';
import type { SettleBudget } from '../settle-budget/settle-budget.js';

const workspace = z.string();
const CallEnded = z.discriminatedUnion('type', [
  ModelCallCompleted.extend({ workspace }),
  ModelCallAborted.extend({ workspace }),
]);

/**
 * Settles each attempt by its event, also when the agent that made the call did not live to say so.
 * Delivered at least once, and beside the agent's own request: the reservation ends once, whoever comes first.
 */
export const settleCalls = defineConsumer({
  durable: 'metering-settle-calls',
  subject: 'evt.*.session.>',
  schema: CallEnded,
  types: ['ModelCallCompleted', 'ModelCallAborted'],
  handle: (settle: SettleBudget) => async (event) => {
    const { reservationId } = event.data;
    // `missing`: refused, or never asked for. One that is made after its call has ended expires, and is looked up then.
    await settle({ workspace: event.workspace, reservationId, outcome: outcomeOfCall(event) });
  },
});
