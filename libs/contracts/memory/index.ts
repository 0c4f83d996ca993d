import { z } from 'zod';
import { MAX_IDENTITY_LENGTH } from '../agent/agent-definition.js';
import { AgentId } from '../agent/requests.js';
import { WorkspaceId } from '../log/index.js';
import { defineRequest } from '../messaging/index.js';

/** A fact in memory, with the event that it was learned from. */
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

const IdentityText = z.string().max(MAX_IDENTITY_LENGTH).nullable();
/** Texts of SOUL.md, AGENT.md, IDENTITY.md and USER.md of a spawned agent. */
const IdentityTexts = z.strictObject({
  soul: IdentityText,
  agent: IdentityText,
  identity: IdentityText,
  user: IdentityText,
});

/**
 * Assembles the context of a model call: the soul, then the facts that match the query. The agent
 * adds the recent turns. The reply includes at least the session's events up to version `atLeast`.
 */
export const assembleContext = defineRequest({
  subject: 'cmd.memory.context.assemble',
  request: z.strictObject({
    workspace: WorkspaceId,
    sessionId: z.uuid(),
    sessionKey: z.string(),
    /** Configured agent whose identity files apply: the base of a spawned one. */
    agentId: AgentId,
    /** Texts that replace the identity files. Absent: the files apply. */
    identity: IdentityTexts.optional(),
    atLeast: z.int().nonnegative(),
    query: z.string(),
    /** Maximum size of the whole context, tokens. */
    budgetTokens: z.int().positive(),
  }),
  reply: z.object({
    soul: z.object({ text: z.string(), tokens: z.int() }).nullable(),
    facts: z.array(Fact),
    tokens: z.int(),
    /** Version of the session's stream that the reply includes. */
    version: z.int(),
  }),
  timeoutMs: 10_000,
});

/** Returns the facts of a session. */
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

/**
 * Returns the facts that were believed under a session key at a position of the log. A fork takes
 * them over.
 */
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
