import { z } from 'zod';
import { MessageFile } from './content-parts.js';

const ModelChoice = z.object({ provider: z.string(), model: z.string() });

/** A tool call of a finished turn, as a later context shows it. */
const RecalledCall = z.object({
  callId: z.uuid(),
  providerCallId: z.string(),
  name: z.string(),
  input: z.json(),
  status: z.enum(['asked', 'requested', 'completed', 'failed', 'unknown']),
  content: z.string(),
  isError: z.boolean(),
});

/** A finished turn, with the fields that a fork's context needs. */
export const RecalledTurn = z.object({
  turnId: z.uuid(),
  content: z.string(),
  files: z.array(MessageFile).optional(),
  steps: z.array(
    ModelChoice.extend({
      text: z.string(),
      calls: z.array(RecalledCall),
      /** State that the model wants in later turns, and the thought that it needs. */
      providerState: z.string().optional(),
      thought: z.string().optional(),
    }),
  ),
  ending: z.enum(['completed', 'failed', 'cancelled']),
  note: z.string(),
});
export type RecalledTurn = z.infer<typeof RecalledTurn>;

/**
 * A fact that was believed at the fork point. `sourceEventId` is the event that it was learned
 * from.
 */
export const BelievedFact = z.object({
  subject: z.string(),
  predicate: z.string(),
  object: z.string(),
  confidence: z.number().min(0).max(1),
  learnedAt: z.iso.datetime(),
  sourceEventId: z.uuid(),
});
export type BelievedFact = z.infer<typeof BelievedFact>;

export const FORK_PURPOSES = ['fork', 'whatif'] as const;

/** Data of `SessionForked`: the origin of the session and all the context that it takes over. */
export const SessionForkedData = {
  sessionId: z.uuid(),
  /** Session and version of the fork point, with the hash of the event of that version. */
  origin: z.object({
    sessionId: z.uuid(),
    version: z.int().positive(),
    hash: z.string().regex(/^[0-9a-f]{64}$/),
  }),
  /**
   * `whatif` repeats turns of the origin with another model; tool results come from the origin's
   * record only.
   */
  purpose: z.enum(FORK_PURPOSES),
  /** Model that replaces the agent's. */
  choice: ModelChoice.optional(),
  /** Turns before the fork point that a context can show, oldest first. */
  recent: z.array(RecalledTurn),
  facts: z.array(BelievedFact),
  /** Only for `whatif`: each turn and the origin's turn that it repeats. */
  remakes: z.array(z.object({ turnId: z.uuid(), of: z.uuid() })).optional(),
  /** The fork uses the files of its origin as they are. Default: a copy as of the fork point. */
  files: z.literal('shared').optional(),
  forkedAt: z.iso.datetime(),
};
