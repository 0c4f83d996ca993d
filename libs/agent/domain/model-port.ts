import type { ToolCall, Usage } from '@antiphon/contracts/agent';
import type { JsonObject, JsonValue } from '@antiphon/kernel';

/** One message of a conversation as every provider understands it; adapters map it to their vendor's shape. */
export type ModelMessage = UserMessage | AssistantMessage | ToolMessage;

export interface UserMessage {
  readonly role: 'user';
  readonly text: string;
}

/** What the model said in one step. `text` may be empty only when `toolCalls` is not. */
export interface AssistantMessage {
  readonly role: 'assistant';
  readonly text: string;
  readonly toolCalls: readonly ModelToolUse[];
}

/** Every result of one assistant message's tool calls, in the order of the calls: never a part of them. */
export interface ToolMessage {
  readonly role: 'tool';
  readonly results: readonly ModelToolResult[];
}

export interface ModelToolUse {
  /** Unique within one request: the model's own id, which it will find again in the result. */
  readonly id: string;
  readonly name: string;
  readonly input: ToolCall['input'];
}

export interface ModelToolResult {
  readonly id: string;
  readonly name: string;
  readonly content: string;
  readonly isError: boolean;
}

/** A tool as the model is told of it. */
export interface ModelTool {
  readonly name: string;
  readonly description: string;
  /** JSON Schema of the input. */
  readonly inputSchema: JsonObject;
}

/** What is rendered and sent: everything that the upper bound of the input depends on. */
export interface ModelPrompt {
  /** The configured provider's name, not its kind. */
  readonly provider: string;
  readonly model: string;
  /** Empty when there is nothing to say. */
  readonly system: string;
  /** Begins with a user message; roles are legal for every vendor, tool uses and results are paired. */
  readonly messages: readonly ModelMessage[];
  readonly tools: readonly ModelTool[];
}

export interface ModelRequest extends ModelPrompt {
  /** What metering granted; the provider must not write more. */
  readonly maxOutputTokens: number;
  /** Aborts the call: the adapter closes the provider's connection and throws `cancelled`. */
  readonly signal: AbortSignal;
  readonly streaming: boolean;
}

/** Where deltas go while the model writes; never called after the call's promise is settled. Deltas are not empty. */
export interface ModelSink {
  onText(delta: string): void;
  onThought(delta: string): void;
}

/** A tool call as the model asked for it. `providerCallId` may be empty or repeat: some vendors give none. */
export interface RequestedToolCall {
  readonly providerCallId: string;
  readonly name: string;
  /** Parsed from complete JSON only; arguments that do not parse are a `provider_protocol` failure. */
  readonly input: JsonValue;
}

export interface ModelAnswer {
  /** The deltas of `onText`, joined. */
  readonly text: string;
  /** The deltas of `onThought`, joined. */
  readonly thought: string;
  readonly toolCalls: readonly RequestedToolCall[];
  readonly finishReason: 'stop' | 'tool_calls' | 'length' | 'content_filter' | 'other';
  /** Null when the provider did not say, or said nonsense. */
  readonly usage: ModelUsage | null;
  /** The model that answered, as the provider names it; only for whoever watches. */
  readonly model?: string;
}

export type ModelUsage = Pick<Usage, 'inputTokens' | 'outputTokens'>;

export const MODEL_FAILURE_REASONS = [
  'provider_unreachable',
  'provider_timeout',
  'provider_error',
  'provider_protocol',
  'cancelled',
] as const;
export type ModelFailureReason = (typeof MODEL_FAILURE_REASONS)[number];

export interface ModelFailureDetails {
  readonly reason: ModelFailureReason;
  /** Safe to show to a client: `provider unreachable`, `provider timeout`, or the provider's body without secrets. */
  readonly message: string;
  /** False only when no byte of the request can have reached the provider, so that nothing can be billed. */
  readonly dispatched: boolean;
  /** Whether the same request may succeed later: not for 400, 401, 403, 404 and the like. */
  readonly retryable: boolean;
  /** What a `retry-after` header asked for. */
  readonly retryAfterMs?: number;
  /** HTTP status, where there was one. */
  readonly status?: number;
  /** What the provider had said it used before the call broke. */
  readonly usage?: ModelUsage;
}

/** Thrown by `ModelPort.complete`, and nothing else is. */
export class ModelFailure extends Error implements ModelFailureDetails {
  readonly reason: ModelFailureReason;
  readonly dispatched: boolean;
  readonly retryable: boolean;
  declare readonly retryAfterMs?: number;
  declare readonly status?: number;
  declare readonly usage?: ModelUsage;

  constructor(details: ModelFailureDetails, options: { cause?: unknown } = {}) {
    super(details.message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'ModelFailure';
    this.reason = details.reason;
    this.dispatched = details.dispatched;
    this.retryable = details.retryable;
    if (details.retryAfterMs !== undefined) this.retryAfterMs = details.retryAfterMs;
    if (details.status !== undefined) this.status = details.status;
    if (details.usage !== undefined) this.usage = details.usage;
  }
}

/**
 * All providers behind one door; it looks the adapter up by `request.provider`.
 * It makes one attempt: retries, backoff and the fallback provider are the driver's, because each attempt is a fact.
 * Adapters bound their own time (connect, first byte, idle between bytes) and fail with `provider_timeout`.
 */
export interface ModelPort {
  complete(request: ModelRequest, sink: ModelSink): Promise<ModelAnswer>;
  /** Upper bound of the rendered prompt in tokens: a real tokenizer's count where known, else its UTF-8 bytes, plus overheads. */
  inputBound(prompt: ModelPrompt): number;
  /** What the model can write at most in one call, where known; the driver asks metering for no more. */
  maxOutputTokens(provider: string, model: string): number;
  /** The kind of a configured provider, so that `scripted` can be labelled as such wherever it shows. */
  kindOf(provider: string): string;
}
