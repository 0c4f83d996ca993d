import { z } from 'zod';
import { WorkspaceId } from '../log/index.js';
import { defineRequest } from '../messaging/index.js';
import { FORK_PURPOSES } from './fork-events.js';

/** Longest message content, in UTF-16 units; a frame is 1 MiB at most anyway. */
export const MAX_CONTENT_LENGTH = 256 * 1024;
/** Turns of one what-if at most. */
export const MAX_REMADE_TURNS = 20;
export const IdempotencyKey = z.string().min(1).max(200);
export const AgentId = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/);

/** Who asks: the scope of an idempotency key, and later the principal of a key. */
export const Caller = z.string().min(1).max(200);

/** Where a conversation takes place; with the agent it makes the session key. */
export const SessionAddress = z.strictObject({
  agentId: AgentId,
  channel: z.string().min(1).max(200),
  account: z.string().min(1).max(200),
  peer: z.string().min(1).max(200),
});
export type SessionAddress = z.infer<typeof SessionAddress>;

/** Either the address (the session begins with its first message) or a session that exists. */
export const SessionTarget = z.union([
  z.strictObject({ address: SessionAddress }),
  z.strictObject({ sessionId: z.uuid() }),
]);
export type SessionTarget = z.infer<typeof SessionTarget>;

/** Answered once `TurnRequested` is committed. */
export const submitTurn = defineRequest({
  subject: 'cmd.agent.turn.submit',
  request: z.strictObject({
    workspace: WorkspaceId,
    target: SessionTarget,
    content: z.string().min(1).max(MAX_CONTENT_LENGTH),
    caller: Caller,
    idempotencyKey: IdempotencyKey.optional(),
  }),
  reply: z.object({
    sessionId: z.uuid(),
    turnId: z.uuid(),
    agentId: z.string(),
    /** Version of the session's event stream after the accepting append. */
    version: z.int().positive(),
    /** Offset of this turn's `accepted` frame when it began at once, null when it queues behind another. */
    acceptedOffset: z.int().nonnegative().nullable(),
    /** True when an earlier request with the same key was accepted and this one joins its turn. */
    joined: z.boolean(),
  }),
  timeoutMs: 10_000,
});

/** Binds the key of a session to a new session; the old one stays readable. */
export const newSession = defineRequest({
  subject: 'cmd.agent.session.new',
  request: z.strictObject({
    workspace: WorkspaceId,
    target: SessionTarget,
    caller: Caller,
    idempotencyKey: IdempotencyKey.optional(),
  }),
  reply: z.object({
    sessionId: z.uuid(),
    sessionKey: z.string(),
    agentId: z.string(),
    previousSessionId: z.uuid().nullable(),
  }),
  timeoutMs: 10_000,
});

/**
 * Makes a session that goes on from another one as it was behind an event: its own stream and key, the recent turns
 * and what memory believed then. With `whatIf`, turns that followed in the origin are made again at once.
 */
export const forkSession = defineRequest({
  subject: 'cmd.agent.session.fork',
  request: z.strictObject({
    workspace: WorkspaceId,
    sessionId: z.uuid(),
    /** Between turns; without it, behind the last turn (with `whatIf`, before the last turns). */
    atVersion: z.int().positive().optional(),
    agent: AgentId.optional(),
    provider: z.string().min(1).max(200).optional(),
    model: z.string().min(1).max(200).optional(),
    /** How many of the turns that followed are made again. */
    whatIf: z.strictObject({ turns: z.int().min(1).max(MAX_REMADE_TURNS) }).optional(),
    caller: Caller,
    idempotencyKey: IdempotencyKey.optional(),
  }),
  reply: z.object({
    sessionId: z.uuid(),
    sessionKey: z.string(),
    agentId: z.string(),
    origin: z.object({ sessionId: z.uuid(), version: z.int().positive() }),
    purpose: z.enum(FORK_PURPOSES),
    /** The turns that are made again, with those that they are made again of. */
    remakes: z.array(z.object({ turnId: z.uuid(), of: z.uuid() })),
  }),
  timeoutMs: 15_000,
});

export const cancelTurn = defineRequest({
  subject: 'cmd.agent.turn.cancel',
  request: z.strictObject({
    workspace: WorkspaceId,
    sessionId: z.uuid(),
    /** Without it, the open turn and every queued one. */
    turnId: z.uuid().optional(),
    caller: Caller,
  }),
  reply: z.object({
    cancelled: z.boolean(),
    /** Of the turn, when there was nothing to cancel. */
    status: z.string().optional(),
  }),
  timeoutMs: 10_000,
});

/** A hint from one agent process to the one that drives a session: read its event stream again. */
export const driverNotificationSubject = (owner: string): string => `hint.agent.${owner}`;

/** Notification between agent processes: the circuit of a provider was opened or closed. */
export const BREAKER_NOTIFICATION_SUBJECT = 'hint.agent.breakers';

export const AgentView = z.object({
  id: z.string(),
  name: z.string(),
  role: z.string().nullable(),
  provider: z.string(),
  model: z.string(),
  tools: z.array(z.string()),
  capabilities: z.array(z.string()),
  position: z.string().nullable(),
  state: z.enum(['idle', 'working']),
  isDefault: z.boolean(),
});
export type AgentView = z.infer<typeof AgentView>;

export const listAgents = defineRequest({
  subject: 'cmd.agent.agent.list',
  request: z.strictObject({ workspace: WorkspaceId }),
  reply: z.object({ agents: z.array(AgentView) }),
  timeoutMs: 5_000,
});
