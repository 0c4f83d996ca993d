import { z } from 'zod';
import { APPROVAL_EVENTS } from './approval-events.js';
import { CHAT_CHANGES } from './chat-events.js';
import { MessageFile } from './content-parts.js';
import { SessionForkedData } from './fork-events.js';
import { AgentMessage } from './message-events.js';
import {
  ToolCall,
  ToolCallRequested,
  ToolCallClaimed,
  ToolCallReleased,
  ToolCallRestarted,
  ToolCallDeferred,
  ToolCallCompleted,
  ToolCallFailed,
  ToolCallUnknown,
} from './tool-call-events.js';
import { CACHE_TOKENS } from '../log/cache-tokens.js';
import { Cause, event, eventOfCause } from '../log/stored-event.js';

export * from './tool-call-events.js';

/**
 * Tokens of one model call. `estimated` is true when the provider did not report all of them, or
 * invalid numbers. The input includes its cached parts.
 */
export const Usage = z.object({
  inputTokens: z.int().nonnegative(),
  ...CACHE_TOKENS,
  outputTokens: z.int().nonnegative(),
  estimated: z.boolean(),
});
export type Usage = z.infer<typeof Usage>;

/**
 * Length of one text or thought frame of an attempt, UTF-16 units. Frames cut the attempt's text in
 * order.
 */
export const StreamedFrame = z.object({ kind: z.enum(['text', 'thought']), length: z.int().positive() });
export type StreamedFrame = z.infer<typeof StreamedFrame>;

/**
 * A conversation with an agent begins. After `/new`, `previousSessionId` names the session that the
 * key had before.
 */
export const SessionStarted = event('SessionStarted', {
  sessionId: z.uuid(),
  /** `{agent}:{channel}:{account}:{peer}`, each part percent-escaped. */
  sessionKey: z.string(),
  agentId: z.string(),
  previousSessionId: z.uuid().optional(),
  startedAt: z.iso.datetime(),
});
/**
 * Follows `SessionStarted`: this session continues a copy of another one, which stays unchanged.
 */
export const SessionForked = event('SessionForked', SessionForkedData);
/** Stored in the stream of the key: binds the key to a session. */
export const SessionKeyBound = event('SessionKeyBound', { sessionKey: z.string(), sessionId: z.uuid() });
/** One step of a request from agent to agent. A turn carries the steps that led to it. */
export const AgentHop = z.object({
  kind: z.enum(['ask', 'hand_over']),
  from: z.string(),
  to: z.string(),
  /** SHA-256 (hex) of the open request: the question, or the message of the person. */
  digest: z.string(),
  /** Number of new facts (tool results, messages) of the whole chain before this step. */
  facts: z.int().nonnegative(),
  sessionId: z.uuid(),
  turnId: z.uuid(),
  callId: z.uuid(),
});
export type AgentHop = z.infer<typeof AgentHop>;
/** Version of the file that is the agent's prompt in a turn. */
export const TurnRole = z.object({
  path: z.string(),
  /** SHA-256 (hex) of its bytes. */
  digest: z.string(),
});
export type TurnRole = z.infer<typeof TurnRole>;
/** The turn is accepted. Exactly one terminal event (`TURN_ENDS`) follows. */
export const TurnRequested = event('TurnRequested', {
  turnId: z.uuid(),
  content: z.string(),
  /** Files of the message, at their places in the text. Absent without any, and in older events. */
  files: z.array(MessageFile).optional(),
  /** Absent unless another agent asked for the turn. Oldest first. */
  chain: z.array(AgentHop).optional(),
  /** Absent for an agent without a file of its role: its configured prompt applies. */
  role: TurnRole.optional(),
  /** Principal of the request, such as `key/<id>` or `agent/<id>`. Absent in older events. */
  caller: z.string().max(200).optional(),
  requestedAt: z.iso.datetime(),
});
/** The turn waits, because its agent may not continue. The next model call ends the wait. */
export const TurnBlocked = event('TurnBlocked', {
  turnId: z.uuid(),
  code: z.enum(['AGENT.PAUSED', 'AGENT.ERROR', 'AGENT.QUEUED']),
  cause: Cause,
  /** Time at which the wait ends by itself, or is tried to end; null if a person has to end it. */
  until: z.iso.datetime().nullable(),
  blockedAt: z.iso.datetime(),
});
export type BlockCode = z.infer<typeof TurnBlocked>['data']['code'];
export const TurnCancelRequested = event('TurnCancelRequested', {
  turnId: z.uuid(),
  requestedAt: z.iso.datetime(),
});
export const ModelChoice = z.object({ provider: z.string(), model: z.string() });
/** Part of an agent's configuration that drives the turns of a session. */
export const TurnPolicy = ModelChoice.extend({
  fallback: ModelChoice.nullable(),
  /** Maximum number of model calls in one turn. */
  maxIterations: z.int().positive(),
});
export type TurnPolicy = z.infer<typeof TurnPolicy>;
/**
 * An attempt at a model call begins. `attempt` counts the model attempts of the session, from 1.
 */
export const ModelCallStarted = event('ModelCallStarted', {
  turnId: z.uuid(),
  attempt: z.int().positive(),
  /** Number of the model call within the turn, from 1. Retries of a call share its step. */
  step: z.int().positive(),
  /** Number of the try within the step, from 1. */
  tryNumber: z.int().positive(),
  provider: z.string(),
  model: z.string(),
  /** Budget reservation that this attempt spends from. */
  reservationId: z.uuid(),
  /** Present only where it differs from the session's last policy. A replay uses it. */
  policy: TurnPolicy.optional(),
  startedAt: z.iso.datetime(),
});
/** Cause of an answer that ends early: its output limit, or a filter of the provider. */
export const AnswerCut = z.enum(['length', 'content_filter']);
export type AnswerCut = z.infer<typeof AnswerCut>;

/**
 * Beginning of a request, without its texts. A vendor's prompt cache is valid for as long as it
 * stays the same.
 */
export const PromptShape = z.object({
  toolsDigest: z.string(),
  systemDigest: z.string(),
  /** Number of all messages, and of those before the turn. */
  messages: z.int().nonnegative(),
  earlierMessages: z.int().nonnegative(),
  /** True if the turn has a text of its own before its message, such as remembered facts. */
  hasContext: z.boolean(),
});
export type PromptShape = z.infer<typeof PromptShape>;

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
  /**
   * Reasoning and ids that the model wants back with the results of the tool calls, unchanged.
   * Absent where it wants nothing back, and in older events. Empty after a deletion.
   */
  providerState: z.string().optional(),
  /** True if the model wants the state in later turns, too. */
  keepsProviderState: z.literal(true).optional(),
  usage: Usage,
  /** Id by which the provider tells an estimated usage later. Absent where it tells none. */
  generationId: z.string().max(200).optional(),
  /** Cost in integer micro-USD at the configured prices; null when the model has no price. */
  costMicroUsd: z.int().nonnegative().nullable(),
  /** Time of the first text, from which the agent speaks. Absent without text, and in older events. */
  firstTextAt: z.iso.datetime().optional(),
  /** Beginning of the request. Absent in older events. */
  prompt: PromptShape.optional(),
  completedAt: z.iso.datetime(),
});
/** An attempt failed. Its streamed text is stored, so that its frames can be derived again. */
export const ModelCallAborted = eventOfCause('ModelCallAborted', {
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
    /** The circuit breaker of the provider is open; no request was sent. */
    'provider_paused',
    /** Memory, metering or the sandbox failed permanently; no request was sent to the provider. */
    'dependency_failed',
    'driver_lost',
    'cancelled',
  ]),
  /** True if the process stopped in order: the step has not lost it. */
  released: z.boolean().optional(),
  cause: Cause,
  /** False when no request can have reached the provider, so that nothing can be billed. */
  dispatched: z.boolean(),
  /** True if the provider answered with an error and no usage, so that it bills nothing. */
  refused: z.literal(true).optional(),
  retryable: z.boolean(),
  /** Tries that the settings allow at this provider. Absent: three. */
  tries: z.int().positive().optional(),
  text: z.string(),
  thought: z.string(),
  frames: z.array(StreamedFrame),
  /** Usage that the provider reported, if any. */
  usage: Usage.nullable(),
  /** Id by which the provider tells an unknown or estimated usage later. */
  generationId: z.string().max(200).optional(),
  abortedAt: z.iso.datetime(),
});
/**
 * Messages of the agent's inbox are in the context of this turn from here on. Committed with the
 * `InboxRead` of the inbox.
 */
export const MessagesReceived = event('MessagesReceived', {
  turnId: z.uuid(),
  messages: z.array(AgentMessage).min(1).max(100),
  /** Position of the log up to which the inbox was read. */
  upTo: z.int().nonnegative(),
  receivedAt: z.iso.datetime(),
});
/**
 * The answer of the agent that got the turn by `hand_over`, word for word. It is the answer of this
 * turn, and `TurnCompleted` follows.
 */
export const AnswerForwarded = event('AnswerForwarded', {
  turnId: z.uuid(),
  callId: z.uuid(),
  /** Agent that gave the answer. */
  agentId: z.string(),
  text: z.string(),
  forwardedAt: z.iso.datetime(),
});
/**
 * The answer promises a hand-over that the agent did not make. It gets the text of the
 * cause once, and answers again.
 */
export const AnswerReturned = eventOfCause('AnswerReturned', {
  turnId: z.uuid(),
  cause: Cause,
  returnedAt: z.iso.datetime(),
});
export const TurnCompleted = event('TurnCompleted', {
  turnId: z.uuid(),
  /** Present where the provider ended the answer before the model had finished it. */
  cutBy: AnswerCut.optional(),
  completedAt: z.iso.datetime(),
});
/** The turn failed. The cause is a rule of the session, or an error of a provider or a tool. */
export const TurnFailed = eventOfCause('TurnFailed', {
  turnId: z.uuid(),
  code: z.string(),
  cause: Cause,
  failedAt: z.iso.datetime(),
});
export const TurnCancelled = event('TurnCancelled', { turnId: z.uuid(), cancelledAt: z.iso.datetime() });

/** Every event of a `session-<id>` stream. */
export const SessionEvent = z.discriminatedUnion('type', [
  SessionStarted,
  SessionForked,
  TurnRequested,
  TurnBlocked,
  TurnCancelRequested,
  ModelCallStarted,
  ModelCallCompleted,
  ModelCallAborted,
  ...APPROVAL_EVENTS,
  ToolCallRequested,
  ToolCallClaimed,
  ToolCallReleased,
  ToolCallRestarted,
  ToolCallDeferred,
  ToolCallCompleted,
  ToolCallFailed,
  ToolCallUnknown,
  MessagesReceived,
  AnswerForwarded,
  AnswerReturned,
  ...CHAT_CHANGES,
  TurnCompleted,
  TurnFailed,
  TurnCancelled,
]);
export type SessionEvent = z.infer<typeof SessionEvent>;
export type SessionEventOf<T extends SessionEvent['type']> = Extract<SessionEvent, { type: T }>;

/** Returns the id of the Temporal workflow that retries a tool call. */
export const toolWorkflowId = (callId: string): string => `tool/${callId}`;

/** Returns the id of a session's event stream. */
export const sessionStream = (sessionId: string): string => `session-${sessionId}`;
/**
 * Returns the id of the stream that binds a session key. `keyId` is a UUID derived from the key.
 */
export const sessionKeyStream = (keyId: string): string => `session-key-${keyId}`;
/**
 * Returns the name of the lease of a session. Its epoch fences every action of the session's
 * driver.
 */
export const sessionLease = (sessionId: string): string => `session/${sessionId}`;
