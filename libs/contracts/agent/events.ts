import { z } from 'zod';
import { APPROVAL_EVENTS } from './approval-events.js';
import { event } from './event-shape.js';
import { SessionForkedData } from './fork-events.js';
import { ToolRetry } from '../sandbox/index.js';

/** Tokens of one model call. `estimated` when the provider did not say, or said nonsense. */
export const Usage = z.object({
  inputTokens: z.int().nonnegative(),
  outputTokens: z.int().nonnegative(),
  estimated: z.boolean(),
});
export type Usage = z.infer<typeof Usage>;

/** One text or thought frame of an attempt: its length in UTF-16 units, cut from the attempt's text or thought in order. */
export const StreamedFrame = z.object({ kind: z.enum(['text', 'thought']), length: z.int().positive() });
export type StreamedFrame = z.infer<typeof StreamedFrame>;

/** A tool call as the model asked for it. `callId` is ours, unique; `providerCallId` is the model's own and may repeat. */
export const ToolCall = z.object({
  callId: z.uuid(),
  providerCallId: z.string(),
  name: z.string(),
  input: z.json(),
});
export type ToolCall = z.infer<typeof ToolCall>;

/** A conversation with an agent begins. `peerOf` names the earlier session of the same key, after `/new`. */
export const SessionStarted = event('SessionStarted', {
  sessionId: z.uuid(),
  /** `{agent}:{channel}:{account}:{peer}`, each part percent-escaped. */
  sessionKey: z.string(),
  agentId: z.string(),
  previousSessionId: z.uuid().optional(),
  startedAt: z.iso.datetime(),
});
/** Right behind `SessionStarted`: this session goes on from another one, which it never touches. */
export const SessionForked = event('SessionForked', SessionForkedData);
/** In the stream of the key: which session it means from now on. */
export const SessionKeyBound = event('SessionKeyBound', { sessionKey: z.string(), sessionId: z.uuid() });
/** The accepted fact: from here on the turn ends in exactly one terminal event. */
export const TurnRequested = event('TurnRequested', {
  turnId: z.uuid(),
  content: z.string(),
  requestedAt: z.iso.datetime(),
});
export const TurnCancelRequested = event('TurnCancelRequested', {
  turnId: z.uuid(),
  requestedAt: z.iso.datetime(),
});
export const ModelChoice = z.object({ provider: z.string(), model: z.string() });
/** What of an agent's configuration a session's turns are driven by. */
export const TurnPolicy = ModelChoice.extend({
  fallback: ModelChoice.nullable(),
  /** Model calls in one turn at most. */
  maxIterations: z.int().positive(),
});
export type TurnPolicy = z.infer<typeof TurnPolicy>;
/** One attempt at a model call begins; `attempt` counts model attempts in the session, from 1. */
export const ModelCallStarted = event('ModelCallStarted', {
  turnId: z.uuid(),
  attempt: z.int().positive(),
  /** The model call within the turn, from 1; retries of a call share its step. */
  step: z.int().positive(),
  /** The try within the step, from 1. */
  tryNumber: z.int().positive(),
  provider: z.string(),
  model: z.string(),
  /** Metering's reservation that this attempt spends from. */
  reservationId: z.uuid(),
  /** Only where it is another one than the session's last: a replay decides by it. */
  policy: TurnPolicy.optional(),
  startedAt: z.iso.datetime(),
});
export const ModelCallCompleted = event('ModelCallCompleted', {
  turnId: z.uuid(),
  attempt: z.int().positive(),
  step: z.int().positive(),
  provider: z.string(),
  model: z.string(),
  reservationId: z.uuid(),
  text: z.string(),
  thought: z.string(),
  frames: z.array(StreamedFrame),
  toolCalls: z.array(ToolCall),
  finishReason: z.enum(['stop', 'tool_calls', 'length', 'content_filter', 'other']),
  usage: Usage,
  /** Integer micro-USD at the prices in force, null when the model has no price. */
  costMicroUsd: z.int().nonnegative().nullable(),
  completedAt: z.iso.datetime(),
});
/** An attempt that gave no step. What it had streamed is kept, so that its frames can be read again. */
export const ModelCallAborted = event('ModelCallAborted', {
  turnId: z.uuid(),
  attempt: z.int().positive(),
  step: z.int().positive(),
  provider: z.string(),
  model: z.string(),
  reservationId: z.uuid(),
  reason: z.enum([
    'budget_refused',
    'provider_unreachable',
    'provider_timeout',
    'provider_error',
    'provider_protocol',
    /** Too many failures in a row: it is left alone for a while, and was not asked. */
    'provider_paused',
    /** Memory, metering or the sandbox refused for good what the call needs; the provider was not asked. */
    'dependency_failed',
    'driver_lost',
    'cancelled',
  ]),
  message: z.string(),
  /** False when no request can have reached the provider, so nothing can be billed. */
  dispatched: z.boolean(),
  retryable: z.boolean(),
  text: z.string(),
  thought: z.string(),
  frames: z.array(StreamedFrame),
  /** What the provider said it used, if it did. */
  usage: Usage.nullable(),
  abortedAt: z.iso.datetime(),
});
export const ToolCallRequested = event('ToolCallRequested', {
  turnId: z.uuid(),
  callId: z.uuid(),
  attempt: z.int().positive(),
  name: z.string(),
  input: z.json(),
  /** SHA-256 (hex) of the RFC 8785 form of `{name,input}`. */
  digest: z.string(),
  idempotencyKey: z.string(),
  /** Declared by the tool: only then may a lost call be made again. */
  idempotent: z.boolean(),
  /** A `ToolCallClaimed` comes before its tries. Absent where none does: then the request is the claim, unless the tool is idempotent. */
  claims: z.boolean().optional(),
  /** What the tool declares of its retries; absent: `DEFAULT_TOOL_RETRY` if it is idempotent, else one try. */
  retry: ToolRetry.optional(),
  /** For one try, where the agent is held to less than the tool's own time. */
  timeoutMs: z.int().positive().optional(),
});
/**
 * From here on the tool may have been reached. Committed before each try of a call that is not idempotent, so that
 * whoever finds it without an outcome knows that nobody can know.
 */
export const ToolCallClaimed = event('ToolCallClaimed', {
  turnId: z.uuid(),
  callId: z.uuid(),
  /** From 1. */
  tryNumber: z.int().positive(),
});
/**
 * A try gave no outcome, and there will be another: it certainly reached no tool, or the tool is idempotent. From here on
 * the call is its Temporal workflow's (`tool/<callId>`), whoever drives the session.
 */
export const ToolCallDeferred = event('ToolCallDeferred', {
  turnId: z.uuid(),
  callId: z.uuid(),
  /** `unsent`: no tool was reached. `lost`: the answer was. `timed_out`: the tool's time was over. */
  reason: z.enum(['unsent', 'lost', 'timed_out']),
  deferredAt: z.iso.datetime(),
  /** The next try is not made before. */
  dueAt: z.iso.datetime(),
});
/** The tool answered; `isError` when its own answer is an error. */
export const ToolCallCompleted = event('ToolCallCompleted', {
  turnId: z.uuid(),
  callId: z.uuid(),
  content: z.string(),
  isError: z.boolean(),
  /** SHA-256 (hex) of the module that ran. */
  moduleDigest: z.string(),
  durationMs: z.number().nonnegative(),
});
/** The tool gave no answer, and certainly will not: unknown tool, timeout, trap, limits, denied. */
export const ToolCallFailed = event('ToolCallFailed', {
  turnId: z.uuid(),
  callId: z.uuid(),
  code: z.string(),
  message: z.string(),
});
/** Nobody can know whether the tool acted; it is never silently run again. */
export const ToolCallUnknown = event('ToolCallUnknown', {
  turnId: z.uuid(),
  callId: z.uuid(),
  message: z.string(),
});
export const TurnCompleted = event('TurnCompleted', { turnId: z.uuid(), completedAt: z.iso.datetime() });
export const TurnFailed = event('TurnFailed', {
  turnId: z.uuid(),
  code: z.string(),
  message: z.string(),
  failedAt: z.iso.datetime(),
});
export const TurnCancelled = event('TurnCancelled', { turnId: z.uuid(), cancelledAt: z.iso.datetime() });

/** Every event of a `session-<id>` stream. */
export const SessionEvent = z.discriminatedUnion('type', [
  SessionStarted,
  SessionForked,
  TurnRequested,
  TurnCancelRequested,
  ModelCallStarted,
  ModelCallCompleted,
  ModelCallAborted,
  ...APPROVAL_EVENTS,
  ToolCallRequested,
  ToolCallClaimed,
  ToolCallDeferred,
  ToolCallCompleted,
  ToolCallFailed,
  ToolCallUnknown,
  TurnCompleted,
  TurnFailed,
  TurnCancelled,
]);
export type SessionEvent = z.infer<typeof SessionEvent>;
export type SessionEventOf<T extends SessionEvent['type']> = Extract<SessionEvent, { type: T }>;

/** Id of the Temporal workflow that tries a tool call again (contract §6). */
export const toolWorkflowId = (callId: string): string => `tool/${callId}`;

/** The event stream of a session, and the one that binds a session key (its id is a UUID made from the key). */
export const sessionStream = (sessionId: string): string => `session-${sessionId}`;
export const sessionKeyStream = (keyId: string): string => `session-key-${keyId}`;
/** The lease that a session is driven under: whoever acts for its driver is held to this lease's epoch. */
export const sessionLease = (sessionId: string): string => `session/${sessionId}`;
