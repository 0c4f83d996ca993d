import { asOfReply, asOfRequest } from '../log/as-of.js';
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
    /** Position of the log as of which facts are recalled. Absent: the newest facts. */
    position: z.int().nonnegative().optional(),
  }),
  reply: z.object({
    soul: z.object({ text: z.string(), tokens: z.int() }).nullable(),
    facts: z.array(Fact),
    tokens: z.int(),
    /** Version of the session's stream that the reply includes. */
    version: z.int(),
    /** Number of recalled facts that did not fit. */
    leftOut: z.int().nonnegative().optional(),
  }),
  timeoutMs: 10_000,
});

/** Longest text of a memory query, characters. */
const MAX_QUERY_LENGTH = 1_000;

/** An entry of memory, as clients see it. */
export const MemoryEntry = z.object({
  memoryId: z.uuid(),
  kind: z.enum(['fact']).describe('Kind of the entry. A client ignores kinds that it does not know.'),
  text: z.string().describe('The entry in one line.'),
  subject: z.string(),
  predicate: z.string(),
  object: z.string(),
  confidence: z.number().min(0).max(1),
  learnedAt: z.iso.datetime(),
  supersededAt: z.iso.datetime().nullable().describe('Time at which a newer entry replaced it, or null.'),
  eventId: z.uuid().describe('Event that the entry was learned from.'),
  position: z.int().nullable().describe('Position of that event; null until the projection has it.'),
  source: z
    .object({ sessionId: z.uuid(), turnId: z.uuid(), content: z.string(), at: z.iso.datetime() })
    .nullable()
    .describe('Message that the entry was learned from. Only with `detail=full`; null if it is archived.'),
});
export type MemoryEntry = z.infer<typeof MemoryEntry>;

export const MemoryDetail = z.enum(['summary', 'full']);

/** Agent whose API key asks. It sees its own sessions alone. */
const CallerAgent = AgentId.optional();

/** Lists the entries of a session's key, or of all sessions of an agent. */
export const queryMemory = defineRequest({
  subject: 'cmd.memory.entry.query',
  request: z.strictObject({
    workspace: WorkspaceId,
    callerAgent: CallerAgent,
    target: z.union([z.strictObject({ sessionId: z.uuid() }), z.strictObject({ agentId: AgentId })]),
    /** Lists only entries that share a word with this text, most relevant first. */
    query: z.string().max(MAX_QUERY_LENGTH).optional(),
    detail: MemoryDetail.default('summary'),
    includeSuperseded: z.boolean().default(false),
    /** Position of the log whose state is listed. Absent: now. */
    at: z.int().nonnegative().optional(),
    limit: z.int().min(1).max(100).default(20),
  }),
  reply: z.object({
    entries: z.array(MemoryEntry),
    position: z.int().describe('Position of the log that the entries are of.'),
    head: z.int().describe('Newest position of the log.'),
  }),
  timeoutMs: 10_000,
});

/** Returns one entry in full. */
export const recallMemory = defineRequest({
  subject: 'cmd.memory.entry.recall',
  request: z.strictObject({
    workspace: WorkspaceId,
    callerAgent: CallerAgent,
    memoryId: z.uuid(),
    ...asOfRequest,
  }),
  reply: MemoryEntry.extend({ atPosition: asOfReply.position, head: asOfReply.head }),
  timeoutMs: 5_000,
});

/**
 * Lists turns with a model call that were requested while an entry was believed under its key, the
 * newest first. The context of each may still lack the entry, as it selects by words and room.
 */
export const turnsOfEntry = defineRequest({
  subject: 'cmd.memory.entry.turns',
  request: z.strictObject({
    workspace: WorkspaceId,
    callerAgent: CallerAgent,
    memoryId: z.uuid(),
    /** Lists only turns that were requested before this position. */
    before: z.int().positive().optional(),
    limit: z.int().min(1).max(50),
    ...asOfRequest,
  }),
  reply: z.object({
    turns: z.array(
      z.object({
        sessionId: z.uuid(),
        sessionKey: z.string(),
        agentId: z.string(),
        turnId: z.uuid(),
        /** Version of its request in the stream of the session. */
        version: z.int().positive(),
        position: z.int().positive(),
        isDeleted: z.boolean(),
      }),
    ),
    hasMore: z.boolean(),
    position: z.int().nonnegative(),
    head: z.int().nonnegative(),
  }),
  timeoutMs: 10_000,
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
