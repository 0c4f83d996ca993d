import { z } from 'zod';

const ModelChoice = z.object({ provider: z.string(), model: z.string() });

/** A tool call of a turn that is over, as a later context shows it. */
const RecalledCall = z.object({
  callId: z.uuid(),
  providerCallId: z.string(),
  name: z.string(),
  input: z.json(),
  status: z.enum(['asked', 'requested', 'completed', 'failed', 'unknown']),
  content: z.string(),
  isError: z.boolean(),
});

/** A turn that is over, as far as a fork's context needs it. */
export const RecalledTurn = z.object({
  turnId: z.uuid(),
  content: z.string(),
  steps: z.array(ModelChoice.extend({ text: z.string(), calls: z.array(RecalledCall) })),
  ending: z.enum(['completed', 'failed', 'cancelled']),
  note: z.string(),
});
export type RecalledTurn = z.infer<typeof RecalledTurn>;

/** A fact that was believed when the fork was cut; `sourceEventId` is the event that it was learned from, then. */
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

/** Data of `SessionForked`: where a session goes on from, with all that it takes along. */
export const SessionForkedData = {
  sessionId: z.uuid(),
  /** The session that it was cut from, behind the event of this version, which had this hash. */
  origin: z.object({
    sessionId: z.uuid(),
    version: z.int().positive(),
    hash: z.string().regex(/^[0-9a-f]{64}$/),
  }),
  /** `whatif`: turns of the origin are made again with another model; tools answer from the origin's record alone. */
  purpose: z.enum(FORK_PURPOSES),
  /** The model instead of the agent's. */
  choice: ModelChoice.optional(),
  /** The turns before the cut that a context can show, oldest first. */
  recent: z.array(RecalledTurn),
  facts: z.array(BelievedFact),
  /** Of a `whatif`: each turn, and the one of the origin that it is made again of. */
  remakes: z.array(z.object({ turnId: z.uuid(), of: z.uuid() })).optional(),
  forkedAt: z.iso.datetime(),
};
