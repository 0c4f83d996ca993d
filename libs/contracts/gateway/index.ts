import { z } from 'zod';
import { RUN_STATES } from '../agent/workflow-requests.js';
import { AgentId, IdempotencyKey, MAX_CONTENT_LENGTH, forkSession } from '../agent/requests.js';
import { ExportFormat } from '../log/index.js';

/** Version of the WebSocket protocol, as `session.ack` says it. */
export const PROTOCOL_VERSION = 1;

/** JSON-RPC 2.0 codes of contract §3. */
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

export const LIMITS = {
  /** A larger frame gets an error, and the connection lives on. */
  frameBytes: 1024 * 1024,
  /** A larger frame closes the connection with 1009. */
  closeBytes: 4 * 1024 * 1024,
  /** Time for the first `connect` frame, ms. */
  connectMs: 5_000,
  bodyBytes: 1024 * 1024,
} as const;

/** What every open socket is told, unasked, when an engine that the gateway needs goes, and when it is back. */
export const EngineStatusChange = z.object({
  type: z.enum(['gateway.degraded', 'gateway.recovered']),
  /** Names as in `status`: those that cannot be reached; of `gateway.recovered`, those that can be again. */
  engines: z.array(z.string()).min(1),
  message: z.string(),
  /** When the first of them was missed, or when the last one came back. */
  since: z.iso.datetime(),
});
export type EngineStatusChange = z.infer<typeof EngineStatusChange>;

const Part = z.string().min(1).max(200);
const Content = z.string().min(1).max(MAX_CONTENT_LENGTH);

export const RpcRequest = z.object({
  jsonrpc: z.literal('2.0').optional(),
  id: z.union([z.string().max(200), z.number(), z.null()]).optional(),
  method: z.string().max(100),
  params: z.record(z.string(), z.unknown()).optional(),
  /** W3C trace context of the client's own span; what cannot be read is ignored, as the standard says. */
  traceparent: z.unknown().optional(),
});
export type RpcRequest = z.infer<typeof RpcRequest>;

export const ConnectParams = z.strictObject({ token: z.string().min(1).max(4_096) });
export const ChatSendParams = z.strictObject({
  channel: Part,
  account: Part,
  peer: Part,
  content: Content,
  guild: Part.optional(),
  team: Part.optional(),
  agent: AgentId.optional(),
  idempotencyKey: IdempotencyKey.optional(),
});
export type ChatSendParams = z.infer<typeof ChatSendParams>;
export const SessionSendParams = z.strictObject({
  sessionId: z.uuid(),
  content: Content,
  idempotencyKey: IdempotencyKey.optional(),
});
export const SessionNewParams = z.union([
  z.strictObject({ sessionId: z.uuid(), idempotencyKey: IdempotencyKey.optional() }),
  ChatSendParams.omit({ content: true }),
]);
/** Body of `POST /api/v1/sessions/:id/fork`. */
export const ForkBody = forkSession.request.omit({
  workspace: true,
  caller: true,
  sessionId: true,
  idempotencyKey: true,
});
export const SessionForkParams = forkSession.request.omit({ workspace: true, caller: true });
export const SessionResumeParams = z.strictObject({
  sessionId: z.uuid(),
  after: z.int().nonnegative().default(0),
});
export const SessionCancelParams = z.strictObject({ sessionId: z.uuid(), turnId: z.uuid().optional() });

/** What a binding matches; the first of peer, guild, team, account, channel that is given decides its rank. */
export const Binding = z.strictObject({
  agent: AgentId,
  channel: Part.optional(),
  account: Part.optional(),
  peer: Part.optional(),
  guild: Part.optional(),
  team: Part.optional(),
});
export type Binding = z.infer<typeof Binding>;

/** RFC 9457. */
export const Problem = z.object({
  type: z.string(),
  title: z.string(),
  status: z.int(),
  detail: z.string(),
  instance: z.string(),
  code: z.string(),
});
export type Problem = z.infer<typeof Problem>;

/** Query of `GET /api/v1/events`. */
export const EventsQuery = z.strictObject({
  type: z
    .string()
    .regex(/^[A-Za-z]{1,100}$/, 'must be the name of an event type')
    .optional(),
  agent: AgentId.optional(),
  stream: z
    .string()
    .regex(/^[a-z]{1,20}-[A-Za-z0-9-]{1,180}$/, 'must be the id of an event stream')
    .optional(),
  severity: z.enum(['info', 'warning', 'error']).optional(),
  since: z.iso.datetime({ offset: true }).optional(),
  until: z.iso.datetime({ offset: true }).optional(),
  limit: z.coerce.number().int().min(1).max(1_000).default(100),
  cursor: z.string().max(200).optional(),
  offset: z.coerce.number().int().min(0).max(100_000).optional(),
});
export type EventsQuery = z.infer<typeof EventsQuery>;

/** Query of every list that pages by a cursor. */
export const PageQuery = z.strictObject({
  limit: z.coerce.number().int().min(1).max(200).default(50),
  cursor: z.string().max(200).optional(),
});
/** Query of `GET /api/v1/runs`. */
export const RunsQuery = PageQuery.extend({
  workflow: z.uuid().optional(),
  status: z.enum(RUN_STATES).optional(),
});
export {
  ApprovalAnswerBody,
  ApprovalAnswerParams,
  ApprovalParams,
  ApprovalsQuery,
} from './approval-params.js';
/** Query of `GET /api/v1/sessions/:id/export`. */
export const ExportQuery = z.strictObject({ format: ExportFormat.default('jsonl') });
export { Id, Json, Key, RunBody, StartBody, WorkflowBody } from './workflow-bodies.js';
