import { z } from 'zod';
import { WorkspaceId } from '../log/index.js';
import { ProcessId, defineRequest } from '../messaging/index.js';
import { AgentId } from './agent-id.js';
import { ContentPart, MAX_MESSAGE_FILES } from './content-parts.js';
import { FORK_PURPOSES } from './fork-events.js';

/** Maximum size of a message, bytes of UTF-8. It holds 262,144 characters of any kind in the BMP. */
export const MAX_CONTENT_BYTES = 768 * 1024;

const ENCODER = new TextEncoder();

/** Text of a message. */
export const MessageContent = z
  .string()
  .min(1)
  .refine(
    (text) => text.length * 3 <= MAX_CONTENT_BYTES || ENCODER.encode(text).length <= MAX_CONTENT_BYTES,
    `must have at most ${MAX_CONTENT_BYTES} bytes of UTF-8`,
  )
  // PostgreSQL stores neither. A message is kept as it is or refused; all other controls are kept.
  .refine((text) => !text.includes('\0'), 'has a NUL character (U+0000), which cannot be stored: remove it')
  .refine((text) => text.isWellFormed(), 'has half of a UTF-16 pair, which is no character: remove it');

/** Text between two text parts of a message. */
const BETWEEN_PARTS = '\n\n';

/** Returns the text of a list of parts. Each file is at the end of the text before it. */
export const textOfParts = (parts: readonly ContentPart[]): string =>
  parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join(BETWEEN_PARTS);

/** Parts of a message, in their order: texts, and files of the workspace. */
export const MessageParts = z
  .array(ContentPart)
  .min(1)
  .max(2 * MAX_MESSAGE_FILES + 1)
  .refine(
    (parts) => parts.filter(({ type }) => type !== 'text').length <= MAX_MESSAGE_FILES,
    `must have at most ${MAX_MESSAGE_FILES} files`,
  )
  .superRefine((parts, context) => {
    const text = textOfParts(parts);
    if (text === '') return;
    for (const { message } of MessageContent.safeParse(text).error?.issues ?? [])
      context.addIssue({ code: 'custom', message });
  });
export type MessageParts = z.infer<typeof MessageParts>;

/** Content of a message: its text, or a list of parts. */
export const MessageBody = z.union([MessageContent, MessageParts]);
export type MessageBody = z.infer<typeof MessageBody>;

/** Maximum number of turns that one what-if repeats. */
export const MAX_REMADE_TURNS = 20;

export const IdempotencyKey = z
  .string()
  .min(1)
  .max(200)
  .describe(
    'Joins a repeated request to the first one: both get the same response, and the work is done once.',
  );

export { AgentId } from './agent-id.js';

/** Principal of a request, which is the scope of its idempotency key. */
export const Caller = z.string().min(1).max(200);
/** Agent that the caller's key belongs to. It may act only for itself and its descendants. */
export const CallerAgent = AgentId.optional();

/** Address of a conversation. With the agent it determines the session key. */
export const SessionAddress = z.strictObject({
  agentId: AgentId,
  channel: z.string().min(1).max(200),
  account: z.string().min(1).max(200),
  peer: z.string().min(1).max(200),
});
export type SessionAddress = z.infer<typeof SessionAddress>;

/**
 * Returns the session key `{agent}:{channel}:{account}:{peer}`. Percent-escaping keeps keys of two
 * addresses apart.
 */
export const sessionKeyOf = ({ agentId, channel, account, peer }: SessionAddress): string =>
  [agentId, channel, account, peer].map((part) => encodeURIComponent(part)).join(':');

/**
 * Target of a message: an address, whose session starts with its first message, or an existing
 * session.
 */
export const SessionTarget = z.union([
  z.strictObject({ address: SessionAddress }),
  z.strictObject({ sessionId: z.uuid() }),
]);
export type SessionTarget = z.infer<typeof SessionTarget>;

/** Accepts a turn. Replies once `TurnRequested` is committed. */
export const submitTurn = defineRequest({
  subject: 'cmd.agent.turn.submit',
  request: z.strictObject({
    workspace: WorkspaceId,
    target: SessionTarget,
    content: MessageBody,
    caller: Caller,
    callerAgent: CallerAgent,
    idempotencyKey: IdempotencyKey.optional(),
  }),
  reply: z.object({
    sessionId: z.uuid(),
    turnId: z.uuid(),
    agentId: z.string(),
    /** Version of the session's event stream after the accepting append. */
    version: z.int().positive(),
    /**
     * Offset of the turn's `accepted` frame if it began at once, null if it is queued behind
     * another turn.
     */
    acceptedOffset: z.int().nonnegative().nullable(),
    /**
     * Offset of the last frame before the turn, if it waits for its agent: its `blocked` frame may
     * be sent before the caller listens.
     */
    waitsAfter: z.int().nonnegative().optional(),
    /** True if an earlier request with the same key was accepted, and this one joins its turn. */
    joined: z.boolean(),
    /** Process that drives the session: the best one for its next message. Null if none does. */
    driver: ProcessId.nullable().default(null),
  }),
  timeoutMs: 10_000,
  toProcess: true,
});

/** Binds a session key to a new session. The old session stays readable. */
export const newSession = defineRequest({
  subject: 'cmd.agent.session.new',
  request: z.strictObject({
    workspace: WorkspaceId,
    target: SessionTarget,
    caller: Caller,
    callerAgent: CallerAgent,
    idempotencyKey: IdempotencyKey.optional(),
  }),
  reply: z.object({
    sessionId: z.uuid().describe('Id of the new session.'),
    sessionKey: z.string().describe('`{agent}:{channel}:{account}:{peer}`, each part percent-escaped.'),
    agentId: z.string(),
    previousSessionId: z.uuid().nullable().describe('Session that the key had before; null for none.'),
  }),
  timeoutMs: 10_000,
});

/**
 * Forks a session at an event. The fork has its own stream and key, the recent turns and the facts
 * that memory believed at that event. With `whatIf`, turns that followed in the origin are repeated
 * at once.
 */
export const forkSession = defineRequest({
  subject: 'cmd.agent.session.fork',
  request: z.strictObject({
    workspace: WorkspaceId,
    sessionId: z.uuid().describe('Session to fork. It stays unchanged.'),
    atVersion: z
      .int()
      .positive()
      .optional()
      .describe(
        'Stream version after which the fork begins; it must lie between turns. ' +
          'Default: after the last turn, or with `whatIf` before the turns that are repeated.',
      ),
    agent: AgentId.optional().describe('Agent of the fork. Default: the agent of the session.'),
    provider: z.string().min(1).max(200).optional().describe('Provider that replaces the agent’s.'),
    model: z.string().min(1).max(200).optional().describe('Model that replaces the agent’s.'),
    whatIf: z
      .strictObject({
        turns: z
          .int()
          .min(1)
          .max(MAX_REMADE_TURNS)
          .describe('Number of turns after the fork point to repeat.'),
      })
      .optional()
      .describe('Repeats turns of the origin with another model. Tool results come from the record only.'),
    caller: Caller,
    callerAgent: CallerAgent,
    /** False for a caller who chooses among the models of the configuration only. */
    anyModel: z.boolean().optional(),
    idempotencyKey: IdempotencyKey.optional(),
  }),
  reply: z.object({
    sessionId: z.uuid().describe('Id of the fork.'),
    sessionKey: z.string(),
    agentId: z.string(),
    origin: z
      .object({ sessionId: z.uuid(), version: z.int().positive() })
      .describe('Session and stream version of the fork point.'),
    purpose: z.enum(FORK_PURPOSES),
    remakes: z
      .array(z.object({ turnId: z.uuid(), of: z.uuid() }))
      .describe('Each repeated turn with the turn of the origin that it repeats; empty without `whatIf`.'),
  }),
  timeoutMs: 15_000,
});

/** Cancels one turn, or the open turn and every queued one. */
export const cancelTurn = defineRequest({
  subject: 'cmd.agent.turn.cancel',
  request: z.strictObject({
    workspace: WorkspaceId,
    sessionId: z.uuid(),
    turnId: z.uuid().optional(),
    caller: Caller,
    callerAgent: CallerAgent,
  }),
  reply: z.object({
    cancelled: z.boolean().describe('False if the turn had ended before.'),
    status: z.string().optional().describe('Status of the turn if there was nothing to cancel.'),
  }),
  timeoutMs: 10_000,
});

/**
 * Asks the process that made a tool call whether the call may have its first effect. Sent by the
 * sandbox. A permission that was given may have been used, also if its reply is lost.
 */
export const beginToolCall = defineRequest({
  subject: 'cmd.agent.call.begin',
  request: z.strictObject({ attemptId: z.uuid() }),
  reply: z.object({
    granted: z.boolean().describe('False once the caller has given the attempt up.'),
  }),
  timeoutMs: 1_000,
  toProcess: true,
});

/**
 * Returns the subject that wakes the process that drives a session, so that it reads the event
 * stream again.
 */
export const driverNotificationSubject = (owner: string): string => `hint.agent.${owner}`;

/** Subject that tells agent processes that a provider's circuit breaker opened or closed. */
export const BREAKER_NOTIFICATION_SUBJECT = 'hint.agent.breakers';
