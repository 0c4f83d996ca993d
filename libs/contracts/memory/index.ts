import { z } from 'zod';
import { AgentId } from '../agent/requests.js';
import { WorkspaceId } from '../log/index.js';
import { defineRequest } from '../messaging/index.js';

/** A fact as the log supports it: it names the event that it was learned from. */
export const Fact = z.object({
  factId: z.uuid(),
  subject: z.string(),
  predicate: z.string(),
  object: z.string(),
  confidence: z.number().min(0).max(1),
  learnedAt: z.iso.datetime(),
  supersededAt: z.iso.datetime().nullable(),
  sourceEventId: z.uuid(),
});
export type Fact = z.infer<typeof Fact>;

/**
 * What the agent puts before a model, besides the turns that it folds itself: soul, then facts that match the query.
 * `atLeast` is a version of the session's event stream that the answer must have seen.
 */
export const assembleContext = defineRequest({
  subject: 'cmd.memory.context.assemble',
  request: z.strictObject({
    workspace: WorkspaceId,
    sessionId: z.uuid(),
    sessionKey: z.string(),
    agentId: AgentId,
    atLeast: z.int().nonnegative(),
    query: z.string(),
    /** Upper bound for the whole answer, in tokens. */
    budgetTokens: z.int().positive(),
  }),
  reply: z.object({
    soul: z.object({ text: z.string(), tokens: z.int() }).nullable(),
    facts: z.array(Fact),
    tokens: z.int(),
    /** The version that the answer has seen. */
    version: z.int(),
  }),
  timeoutMs: 10_000,
});

export const queryFacts = defineRequest({
  subject: 'cmd.memory.fact.query',
  request: z.strictObject({
    workspace: WorkspaceId,
    sessionId: z.uuid(),
    includeSuperseded: z.boolean().default(false),
    limit: z.int().min(1).max(500).default(100),
  }),
  reply: z.object({ facts: z.array(Fact) }),
  timeoutMs: 5_000,
});

/** What was believed under a session key when the log was at a position: what a fork takes along. */
export const believedFacts = defineRequest({
  subject: 'cmd.memory.fact.believed',
  request: z.strictObject({
    workspace: WorkspaceId,
    sessionKey: z.string(),
    position: z.int().positive(),
  }),
  reply: z.object({ facts: z.array(Fact) }),
  timeoutMs: 10_000,
});
