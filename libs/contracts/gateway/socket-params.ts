import { z } from 'zod';
import { EventFilter } from './http-bodies.js';
import { AgentId, IdempotencyKey, MessageBody, forkSession } from '../agent/requests.js';

/** Version of the WebSocket protocol, sent in `session.ack`. */
export const PROTOCOL_VERSION = 1;

/** JSON-RPC 2.0 error codes of the gateway. */
export const RPC = {
  parseError: -32700,
  invalidRequest: -32600,
  methodNotFound: -32601,
  invalidParams: -32602,
  internal: -32603,
  unauthenticated: -32001,
  forbidden: -32003,
  notFound: -32004,
  conflict: -32009,
  exhausted: -32029,
  providerFailed: -32050,
  engineDown: -32053,
} as const;

/** Features of the configuration (`[features]`) that gate methods, routes and frames. */
export const FEATURES = ['agent_runtime_v1', 'memory_v1', 'workers_v1'] as const;
export type Feature = (typeof FEATURES)[number];

export const LIMITS = {
  /** Maximum size of a frame, bytes. A larger frame gets an error; the connection stays open. */
  frameBytes: 1024 * 1024,
  /** Size above which a frame closes the connection with 1009, bytes. */
  closeBytes: 4 * 1024 * 1024,
  /** Maximum size of what a client sends up to the end of its `connect` frame, bytes. */
  connectBytes: 8 * 1024,
  /** Timeout for the `connect` frame, ms. */
  connectMs: 5_000,
  /** Maximum size of an HTTP body, bytes. */
  bodyBytes: 1024 * 1024,
} as const;

/** Unsolicited frame to every open socket when an engine becomes unreachable or reachable again. */
export const EngineStatusChange = z.object({
  type: z.enum(['gateway.degraded', 'gateway.recovered']),
  engines: z
    .array(z.string())
    .min(1)
    .describe(
      'Names as in `status`. `gateway.degraded`: all unreachable engines. `gateway.recovered`: those that are back.',
    ),
  message: z.string(),
  since: z.iso.datetime().describe('Time of the first failed check, or of the recovery.'),
});
export type EngineStatusChange = z.infer<typeof EngineStatusChange>;

const Part = z.string().min(1).max(200);
const Content = MessageBody.describe(
  'Text of the message, at most 786,432 bytes of UTF-8, or a list of parts: texts, and files of the workspace. ' +
    '`/new` starts a new session instead of a turn.',
);
const SessionId = z.uuid().describe('Id of an existing session.');

/** Number that JSON and JavaScript hold exactly, so that the response has the id of the request. */
const NumericId = z
  .number()
  .refine((id) => Math.abs(id) <= Number.MAX_SAFE_INTEGER, 'a number must not exceed 2^53 - 1');

export const RpcRequest = z.object({
  jsonrpc: z.literal('2.0').optional(),
  id: z.union([z.string().max(200), NumericId, z.null()]).optional(),
  method: z.string().max(100),
  params: z.record(z.string(), z.unknown()).optional(),
  /**
   * W3C trace context of the client's span. An invalid value is ignored, as the standard requires.
   */
  traceparent: z.unknown().optional(),
});
export type RpcRequest = z.infer<typeof RpcRequest>;

/** Capabilities of a client. Unknown names are ignored. */
export const Capabilities = z
  .array(z.string().max(100))
  .max(100)
  .optional()
  .describe('Abilities of the client. With `agent-states` it gets the states of all agents.');

export const ConnectParams = z.strictObject({
  token: z.string().min(1).max(4_096).describe('The gateway’s token.'),
  capabilities: Capabilities,
});
export const ChatSendParams = z.strictObject({
  channel: Part.describe(
    'Channel of the message, such as `web` or `telegram`. `task`, `run`, `plan`, `fork`, `chat` and `agent` are reserved.',
  ),
  account: Part.describe('Account of the channel that received the message.'),
  peer: Part.describe('Sender of the message within the account.'),
  content: Content,
  guild: Part.optional().describe('Guild or server of the message; used by bindings only.'),
  team: Part.optional().describe('Team of the message; used by bindings only.'),
  agent: AgentId.optional().describe('Agent to send to. Default: the agent of the best matching binding.'),
  idempotencyKey: IdempotencyKey.optional(),
});
export type ChatSendParams = z.infer<typeof ChatSendParams>;
export const SessionSendParams = z.strictObject({
  sessionId: SessionId,
  content: Content,
  idempotencyKey: IdempotencyKey.optional(),
});
export const SessionNewParams = z.union([
  z.strictObject({ sessionId: SessionId, idempotencyKey: IdempotencyKey.optional() }),
  ChatSendParams.omit({ content: true }),
]);
export const SessionForkParams = forkSession.request.omit({ workspace: true, caller: true, anyModel: true });
export const SessionResumeParams = z.strictObject({
  sessionId: SessionId,
  after: z
    .int()
    .nonnegative()
    .default(0)
    .describe('Offset of the last frame that the client has. 0 streams the session from its beginning.'),
  turnId: z
    .uuid()
    .optional()
    .describe('Streams only this turn, up to its `done`. Default: the whole session.'),
});
export const SessionCancelParams = z.strictObject({
  sessionId: SessionId,
  turnId: z.uuid().optional().describe('Turn to cancel. Default: the open turn and every queued one.'),
});

/** Position from which a subscription begins. */
const From = z
  .string()
  .max(200)
  .optional()
  .describe(
    'Cursor of the last frame that the client has, or `start` for the beginning of the log. Default: only new events.',
  );
export const EventsSubscribeParams = z.strictObject({ filter: EventFilter.optional(), from: From });
export type EventsSubscribeParams = z.infer<typeof EventsSubscribeParams>;
export const EventsUnsubscribeParams = z.strictObject({
  subscription: z.union([z.string().max(200), NumericId]).describe('Id of the request `events.subscribe`.'),
});

/**
 * A routing rule. All given fields must match. The first given of peer, guild, team, account,
 * channel is its rank.
 */
export const Binding = z.strictObject({
  agent: AgentId,
  channel: Part.optional(),
  account: Part.optional(),
  peer: Part.optional(),
  guild: Part.optional(),
  team: Part.optional(),
});
export type Binding = z.infer<typeof Binding>;
