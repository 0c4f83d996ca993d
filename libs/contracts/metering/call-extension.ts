import { z } from 'zod';
import { AgentId } from '../agent/agent-id.js';
import { BudgetReserved, BudgetSettled } from './budget-events.js';

/**
 * Work of metering in the agent's commit (`antiphon_append_extended`). It is left out if it is not
 * certain to be right: metering then reserves by request, and settles from the log.
 */
export const CallExtension = z.strictObject({
  /** Settles the reservation of the call that completes in this commit. */
  settle: z.strictObject({ reservationId: z.uuid(), eventId: z.uuid() }).optional(),
  /**
   * Reserves the bound of the call that begins in this commit. Session, turn, attempt and model are
   * those of its event. The other fields are those of `reserveBudget`.
   */
  reserve: z
    .strictObject({
      reservationId: z.uuid(),
      eventId: z.uuid(),
      agentId: AgentId,
      agents: z.array(AgentId).min(1).max(32),
      sessionKey: z.string(),
      caller: z.string().max(200).optional(),
      inputBound: z.int().nonnegative(),
      maxOutputTokens: z.int().positive(),
      lifetimeMs: z.int().positive().max(86_400_000),
    })
    .optional(),
});
export type CallExtension = z.infer<typeof CallExtension>;

/** Result of the extension. */
export const CallExtensionResult = z.object({
  settled: BudgetSettled.shape.data.optional(),
  reserved: BudgetReserved.shape.data.optional(),
});
export type CallExtensionResult = z.infer<typeof CallExtensionResult>;
