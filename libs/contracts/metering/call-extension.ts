import { z } from 'zod';
import { BudgetSettled } from './budget-events.js';

/**
 * Work of metering in the agent's commit (`antiphon_append_extended`). It is left out if it is not
 * certain to be right: metering then settles from the log.
 */
export const CallExtension = z.strictObject({
  /** Settles the reservation of the call that completes in this commit. */
  settle: z.strictObject({ reservationId: z.uuid(), eventId: z.uuid() }),
});
export type CallExtension = z.infer<typeof CallExtension>;

/** Result of the extension. */
export const CallExtensionResult = z.object({ settled: BudgetSettled.shape.data });
export type CallExtensionResult = z.infer<typeof CallExtensionResult>;
