import { z } from 'zod';
import { asOfReply, asOfRequest } from '../log/as-of.js';
import { WorkspaceId } from '../log/index.js';
import { defineRequest } from '../messaging/index.js';
import { AgentId } from './agent-id.js';

const Tokens = z.int().nonnegative();
const EventPosition = z.int().positive().nullable();

/** Instructions of the agent, without their text: other routes have it, with their own rights. */
const Instructions = z.object({
  source: z
    .enum(['role_file', 'configuration', 'none'])
    .describe(
      '`role_file`: the version that the turn recorded. `configuration`: the current one, not a fact.',
    ),
  path: z.string().nullable().describe('Path of the role file.'),
  digest: z.string().nullable().describe('SHA-256 (hex) of that version of the role file.'),
  isErased: z.boolean().describe('True if the bytes of that version are gone.'),
  tokens: Tokens,
});

const RememberedFact = z.object({
  memoryId: z.uuid(),
  subject: z.string(),
  predicate: z.string(),
  object: z.string(),
  learnedAt: z.iso.datetime(),
  eventId: z.uuid().describe('Event that it was learned from.'),
  tokens: Tokens,
});

const ContextFile = z.object({
  path: z.string(),
  digest: z.string(),
  size: z.int().nonnegative(),
  tokens: Tokens,
  wholeTokens: Tokens.optional().describe('Tokens of the whole file. If more than `tokens`, it was cut.'),
  sentAs: z
    .enum(['text', 'image', 'document', 'nothing'])
    .optional()
    .describe(
      '`text`: its text, also that of a document. `image` and `document`: its bytes. `nothing`: it has no text, or the model does not take it.',
    ),
  isCut: z.boolean().describe('True if the context has only a part of the file, or none of it.'),
  position: EventPosition.describe(
    'Event that attached it, or that requested the turn with it; null for a file of the origin of a fork.',
  ),
});

const EarlierTurn = z.object({
  turnId: z.uuid(),
  position: EventPosition.describe('Event that requested it; null for a turn of the origin of a fork.'),
  form: z
    .enum(['whole', 'without_tools', 'left_out'])
    .describe('`without_tools`: its texts fit, and its tool calls did not.'),
  reason: z
    .enum(['window', 'room'])
    .nullable()
    .describe('Why it is not whole. `window`: beyond the newest turns. `room`: too large.'),
  tokens: Tokens,
});

const ContextResult = z.object({
  callId: z.uuid(),
  name: z.string(),
  tokens: Tokens,
  wholeTokens: Tokens.describe('Tokens of the whole result. If more than `tokens`, it was clipped.'),
});

/** Maximum number of earlier turns in a description. */
export const MAX_CONTEXT_TURNS = 100;

/** The context of a model call, built again from the facts by the rules that built it. */
export const TurnContextView = z.object({
  sessionId: z.uuid(),
  turnId: z.uuid(),
  agentId: z.string(),
  call: z.object({
    attempt: z.int().positive(),
    step: z.int().positive(),
    tryNumber: z.int().positive(),
    provider: z.string(),
    model: z.string(),
    position: z.int().positive().describe('Event that started the call.'),
  }),
  attempts: z.array(z.int().positive()).describe('All attempts at model calls of the turn.'),
  limitTokens: Tokens.describe(
    'Maximum size: the current `[memory] context_tokens`, or a part of the window of the model.',
  ),
  window: Tokens.describe('Maximum number of earlier turns: the current `[memory] episodic_window`.'),
  tokens: Tokens.describe('Estimated tokens of the whole context.'),
  promptHash: z
    .string()
    .nullable()
    .describe(
      'SHA-256 (hex) of the prompt as built again. The log has none of what was sent. Null once a part is deleted.',
    ),
  instructions: Instructions,
  identity: z.object({ tokens: Tokens }).nullable().describe('Current identity files, which are no facts.'),
  memory: z
    .object({
      tokens: Tokens,
      position: z.int().nonnegative().describe('Position that the facts are of: the last before the turn.'),
      facts: z.array(RememberedFact),
      leftOut: z.int().nonnegative().describe('Number of believed facts that did not fit.'),
    })
    .nullable()
    .describe('Null without the permission `memory:read`.'),
  files: z.array(ContextFile),
  turns: z.array(EarlierTurn).describe(`Earlier turns, the newest first, at most ${MAX_CONTEXT_TURNS}.`),
  earlierTurns: z.int().nonnegative().describe('Number of all earlier turns of the session.'),
  message: z.object({
    tokens: Tokens,
    received: z.int().nonnegative().describe('Messages of other agents that the turn received.'),
    position: z.int().positive().describe('Event that requested the turn.'),
  }),
  results: z.array(ContextResult).describe('Results of the tool calls of this turn.'),
  tools: z
    .array(z.object({ name: z.string(), tokens: Tokens }))
    .describe('Current tools, which are no facts.'),
});
export type TurnContextView = z.infer<typeof TurnContextView>;

/**
 * Describes the context of a model call of a turn. Throws `SESSION.NOT_FOUND`, `TURN.NOT_FOUND` and
 * `TURN.NO_MODEL_CALL`.
 */
export const readTurnContext = defineRequest({
  subject: 'cmd.agent.turn.context',
  request: z.strictObject({
    workspace: WorkspaceId,
    sessionId: z.uuid(),
    turnId: z.uuid(),
    /** Default: the newest attempt. */
    attempt: z.int().positive().optional(),
    /** False leaves the remembered facts out of the reply. */
    includesMemory: z.boolean(),
    /** Agent whose API key asks: it sees what its own sessions remember, and no other. */
    callerAgent: AgentId.optional(),
    ...asOfRequest,
  }),
  reply: TurnContextView.extend(asOfReply),
  timeoutMs: 20_000,
});

/** A turn whose context had an entry of memory. */
export const RememberingTurn = z.object({
  sessionId: z.uuid(),
  turnId: z.uuid(),
  agentId: z.string(),
  position: z.int().positive().describe('Event that requested the turn.'),
  requestedAt: z.iso.datetime(),
  content: z
    .string()
    .nullable()
    .describe('First 200 characters of its message. Null without `sessions:read` and for a deleted message.'),
});
export type RememberingTurn = z.infer<typeof RememberingTurn>;

/**
 * Lists the turns whose context had an entry of memory, the newest first. Throws
 * `MEMORY.ENTRY_UNKNOWN`.
 */
export const listTurnsOfEntry = defineRequest({
  subject: 'cmd.agent.turn.remembering',
  request: z.strictObject({
    workspace: WorkspaceId,
    memoryId: z.uuid(),
    /** False leaves the messages out of the reply. */
    includesContent: z.boolean(),
    /** Agent whose API key asks: it sees what its own sessions remember, and no other. */
    callerAgent: AgentId.optional(),
    cursor: z.string().max(500).optional(),
    limit: z.int().min(1).max(50).default(20),
    ...asOfRequest,
  }),
  reply: z.object({
    turns: z.array(RememberingTurn),
    nextCursor: z
      .string()
      .nullable()
      .describe('Cursor of older turns. A page may have fewer turns than `limit`, or none, and continue.'),
    ...asOfReply,
  }),
  timeoutMs: 20_000,
});
