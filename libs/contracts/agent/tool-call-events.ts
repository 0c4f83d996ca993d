import { z } from 'zod';
import { Cause, event, eventOfCause } from '../log/stored-event.js';
import { ToolRetry } from '../sandbox/index.js';

/**
 * A tool call as the model requested it. `callId` is unique; `providerCallId` is the provider's and
 * may repeat.
 */
/** Why a call that a model asked for cannot be made. Its input is `{}` then. */
export const ToolCallProblem = z.enum([
  /** The arguments are not JSON. */
  'not_json',
  /** The arguments are JSON, and not an object. */
  'not_object',
  /** The arguments nest too deep, or have too many values. */
  'too_complex',
  /** A part of the answer could not be read, and may have been a part of the arguments. */
  'incomplete',
  /** The answer reached its length limit within this call, so that it may be incomplete. */
  'cut',
]);
export type ToolCallProblem = z.infer<typeof ToolCallProblem>;

export const ToolCall = z.object({
  callId: z.uuid(),
  providerCallId: z.string(),
  name: z.string(),
  input: z.json(),
  /** Present where the call is not made. `ToolCallFailed` follows in the same commit. */
  problem: ToolCallProblem.optional(),
});
export type ToolCall = z.infer<typeof ToolCall>;

export const ToolCallRequested = event('ToolCallRequested', {
  turnId: z.uuid(),
  callId: z.uuid(),
  attempt: z.int().positive(),
  name: z.string(),
  input: z.json(),
  /** SHA-256 (hex) of the RFC 8785 form of `{name,input}`. */
  digest: z.string(),
  idempotencyKey: z.string(),
  /** Declared by the tool. Only an idempotent call may be repeated when its outcome is lost. */
  idempotent: z.boolean(),
  /**
   * True when a `ToolCallClaimed` precedes each try. Absent: this event is the claim, unless the
   * tool is idempotent.
   */
  claims: z.boolean().optional(),
  /**
   * Retry policy that the tool declares. Absent: `DEFAULT_TOOL_RETRY` for an idempotent tool, else
   * one try.
   */
  retry: ToolRetry.optional(),
  /** Timeout of one try, where the agent's limit is below the tool's own. */
  timeoutMs: z.int().positive().optional(),
});
/**
 * From here on the tool may have been reached. Committed before each try of a call that is not
 * idempotent. A reader that finds it without an outcome knows that the outcome is unknown.
 */
export const ToolCallClaimed = event('ToolCallClaimed', {
  turnId: z.uuid(),
  callId: z.uuid(),
  /** From 1. */
  tryNumber: z.int().positive(),
});
/**
 * The process that made or prepared the call stops in order, without an outcome. It is not a lost
 * one: the next start of the call is not counted.
 */
export const ToolCallReleased = event('ToolCallReleased', {
  turnId: z.uuid(),
  callId: z.uuid(),
  releasedAt: z.iso.datetime(),
});
/**
 * The process that made or prepared the call ended without an outcome, and this one makes it again.
 * Committed before each such start, so that a call which ends its process is counted.
 */
export const ToolCallRestarted = event('ToolCallRestarted', {
  turnId: z.uuid(),
  callId: z.uuid(),
  /** Number of lost processes. 0 if all that made the call stopped in order. */
  lostDrivers: z.int().nonnegative(),
  restartedAt: z.iso.datetime(),
});
/**
 * A try gave no outcome and another will follow, because no tool was reached or the tool is
 * idempotent. From here on the Temporal workflow `tool/<callId>` makes the tries.
 */
export const ToolCallDeferred = event('ToolCallDeferred', {
  turnId: z.uuid(),
  callId: z.uuid(),
  /**
   * `unsent`: no tool was reached. `lost`: the result was lost. `timed_out`: the call exceeded its
   * timeout.
   */
  reason: z.enum(['unsent', 'lost', 'timed_out']),
  deferredAt: z.iso.datetime(),
  /** Earliest time of the next try. */
  dueAt: z.iso.datetime(),
});
/** A result that is too large for an event: its bytes are in the blob store. */
export const StoredResult = z.object({
  /** SHA-256, hex. */
  digest: z.string(),
  size: z.int().positive(),
});
export type StoredResult = z.infer<typeof StoredResult>;

/** The tool returned a result. `isError` is true when the tool reports an error of its own. */
export const ToolCallCompleted = event('ToolCallCompleted', {
  turnId: z.uuid(),
  callId: z.uuid(),
  /** The result, or the head and tail of a stored one. */
  content: z.string(),
  isError: z.boolean(),
  /** The whole result, where `content` is a part of it. */
  stored: StoredResult.optional(),
  /** SHA-256 (hex) of the module that ran. */
  moduleDigest: z.string(),
  durationMs: z.number().nonnegative(),
});
/** The tool returned no result and will not: unknown tool, timeout, trap, limit or denial. */
export const ToolCallFailed = eventOfCause('ToolCallFailed', {
  turnId: z.uuid(),
  callId: z.uuid(),
  code: z.string(),
  cause: Cause,
});
/** It is unknown whether the tool had an effect. The call is never repeated. */
export const ToolCallUnknown = eventOfCause('ToolCallUnknown', {
  turnId: z.uuid(),
  callId: z.uuid(),
  cause: Cause,
});
