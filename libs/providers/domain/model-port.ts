import { textCause, textOf } from '@antiphon/contracts/causes';
import type { Cause } from '@antiphon/contracts/causes';
import type { MediaFacts, MediaType, ToolCall, ToolCallProblem, Usage } from '@antiphon/contracts/agent';
import type { JsonObject, JsonValue } from '@antiphon/kernel';
import type { Thinking } from './thinking.js';

/** Maximum number of tool calls in one step; a response with more is a protocol error. */
export const MAX_CALLS_PER_STEP = 64;

/** One message of a conversation, neutral of vendors. Adapters map it to their vendor's shape. */
export type ModelMessage = UserMessage | AssistantMessage | ToolMessage;

/** Facts of a file that models take as it is. */
export type SentMedia = MediaFacts & { readonly mediaType: MediaType };

/** An image or a document of a message. */
export interface ModelFile {
  readonly media: SentMedia;
  /** Path by which the model knows it. */
  readonly path: string;
  /** SHA-256 (hex) of its bytes. */
  readonly digest: string;
  /** Base64 of its bytes. Empty until the call is sent: bounds and hashes do not need it. */
  readonly data: string;
  /** Number of characters of the message's text before it. */
  readonly at: number;
}

export interface UserMessage {
  readonly role: 'user';
  readonly text: string;
  /** Files at their places in the text. Absent without any. */
  readonly files?: readonly ModelFile[];
  /**
   * Text before the message that only this turn has, such as remembered facts. It is not part of
   * the system text, so that a vendor's cache of the conversation before it stays valid.
   */
  readonly context?: string;
}

/** Output of the model in one step. `text` may be empty only when `toolCalls` is not. */
export interface AssistantMessage {
  readonly role: 'assistant';
  readonly text: string;
  readonly toolCalls: readonly ModelToolUse[];
  /** State that the model of the request returned with this output, and wants back unchanged. */
  readonly providerState?: string;
  /** Reasoning text of this output. Present with a state only. */
  readonly thought?: string;
}

/** A part of a message of the user, in the order of the message. */
export type UserPart = { readonly text: string } | { readonly file: ModelFile };

/** Returns the parts of a message: its text, divided at its files. */
export const userPartsOf = ({
  text,
  files = [],
}: Pick<UserMessage, 'text' | 'files'>): readonly UserPart[] => {
  let from = 0;
  const parts = files.flatMap((file): UserPart[] => {
    const before = text.slice(from, file.at);
    from = Math.max(from, Math.min(file.at, text.length));
    return before.trim() === '' ? [{ file }] : [{ text: before }, { file }];
  });
  const rest = text.slice(from);
  return rest.trim() === '' && parts.length > 0 ? parts : [...parts, { text: rest }];
};

/** Returns all images and documents of a prompt. */
export const filesOf = ({ messages }: Pick<ModelPrompt, 'messages'>): readonly ModelFile[] =>
  messages.flatMap((message) => (message.role === 'user' ? (message.files ?? []) : []));

/** Formats that a model takes next to text, and the size of its context. */
export interface ModelInputs {
  readonly images: boolean;
  /** PDF. */
  readonly documents: boolean;
  /** Size of its context, tokens. */
  readonly contextWindow: number;
}

/** All results of one assistant message's tool calls, in the order of the calls. */
export interface ToolMessage {
  readonly role: 'tool';
  readonly results: readonly ModelToolResult[];
}

export interface ModelToolUse {
  /** Unique within one request; the result carries the same id. */
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

/** Description of a tool for the model. */
export interface ModelTool {
  readonly name: string;
  readonly description: string;
  /** JSON Schema of the input. */
  readonly inputSchema: JsonObject;
}

/** Rendered part of a request: all that the upper bound of the input depends on. */
export interface ModelPrompt {
  /** The configured provider's name, not its kind. */
  readonly provider: string;
  readonly model: string;
  /** Empty without a system text. */
  readonly system: string;
  /**
   * Begins with a user message. Roles are legal for every vendor; tool uses and results are paired.
   */
  readonly messages: readonly ModelMessage[];
  /** Index of the first message of the open turn, if it is known. */
  readonly turnStart?: number;
  readonly tools: readonly ModelTool[];
}

export interface ModelRequest extends ModelPrompt {
  /** Absent: the model decides whether it thinks. */
  readonly thinking?: Thinking | undefined;
  /** Absent: the model's own. */
  readonly temperature?: number | undefined;
  /** Output limit granted by metering; the provider must not exceed it. */
  readonly maxOutputTokens: number;
  /** Aborts the call. The adapter closes the provider's connection and throws `cancelled`. */
  readonly signal: AbortSignal;
  readonly streaming: boolean;
  /** Workspace whose stored key the call uses; absent in tests of adapters. */
  readonly workspace?: string;
  /** Limits of the agent that makes the call; absent without any. */
  readonly agent?: AgentLimits | undefined;
}

/** Limits that an agent sets for its calls. An absent one is the provider's. Times are ms. */
export interface AgentLimits {
  /** Id of the configured agent, which errors name. */
  readonly id: string;
  /** Model that the agent is configured with. */
  readonly model: string;
  readonly connectMs?: number | undefined;
  readonly firstByteMs?: number | undefined;
  readonly betweenBytesMs?: number | undefined;
  readonly attemptMs?: number | undefined;
  readonly tries?: number | undefined;
  readonly retryTimeouts?: boolean | undefined;
  readonly maxOutputTokens?: number | undefined;
  readonly concurrentCalls?: number | undefined;
  /** Places that it shares with the agent that it was spawned from. */
  readonly shared?: { readonly id: string; readonly concurrentCalls: number };
}

/** Limits of a call that its driver respects. */
export interface DriverLimits {
  /** Output limit; the driver reserves no more than this. */
  readonly maxOutputTokens: number;
  /** Longest time that one attempt may take, with the wait for a free place, ms. */
  readonly longestMs: number;
  readonly tries: number;
}

/**
 * Receives non-empty deltas while the model writes; not called after the call's promise settles.
 */
export interface ModelSink {
  onText(delta: string): void;
  onThought(delta: string): void;
}

/**
 * Tool call requested by the model. `providerCallId` may be empty or repeat: some vendors set none.
 */
export interface RequestedToolCall {
  readonly providerCallId: string;
  readonly name: string;
  /** Parsed from complete JSON; `{}` for a call with a `problem`. */
  readonly input: JsonValue;
  /** Why the call cannot be made: the model gets an error as its result. */
  readonly problem?: ToolCallProblem;
}

export interface ModelAnswer {
  /** The deltas of `onText`, joined. */
  readonly text: string;
  /** The deltas of `onThought`, joined. */
  readonly thought: string;
  readonly toolCalls: readonly RequestedToolCall[];
  readonly finishReason: 'stop' | 'tool_calls' | 'length' | 'content_filter' | 'other';
  /**
   * Reasoning and ids that the provider wants back with the results of the tool calls, unchanged:
   * JSON text in the format of its adapter. Absent where it wants nothing back.
   */
  readonly providerState?: string;
  /** True if the provider wants the state in later turns, too. */
  readonly keepsProviderState?: true;
  /** Null when the provider sent no usage, or an invalid one. */
  readonly usage: ModelUsage | null;
  /** Input that the provider reported, if it did not report the output. */
  readonly reportedInput?: ReportedInput;
  /** Name of the model in the provider's response; used for telemetry only. */
  readonly model?: string;
  /** Id by which the provider tells the usage later. Absent where it tells none. */
  readonly generationId?: string;
}

export type ModelUsage = Omit<Usage, 'estimated'>;
/** Input that a provider reports before its answer is complete. */
export type ReportedInput = Omit<ModelUsage, 'outputTokens'>;

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
  /** Cause to record, without secrets. Its text is the message. */
  readonly why?: Cause;
  /** Text of outside in place of a cause. */
  readonly message?: string;
  /**
   * False only if no byte of the request can have reached the provider: it cannot bill the call.
   */
  readonly dispatched: boolean;
  /**
   * True if the provider answered with an error instead of its work, and reported no usage: it
   * bills nothing.
   */
  readonly refused?: boolean;
  /** True if the same request may succeed later; false for 400, 401, 403, 404 and the like. */
  readonly retryable: boolean;
  /** Start of the provider's own text about a refusal, in which it may name a parameter. */
  readonly refusal?: string;
  /** Delay from a `retry-after` header. */
  readonly retryAfterMs?: number;
  /** HTTP status, if the provider sent one. */
  readonly status?: number;
  /** Usage reported by the provider before the call failed. */
  readonly usage?: ModelUsage;
  /** Input reported by the provider before the call failed, if it reported no output. */
  readonly reportedInput?: ReportedInput;
  /** Id by which the provider tells the usage later. Absent where it tells none. */
  readonly generationId?: string;
}

/** The only error that `ModelPort.complete` throws. */
export class ModelFailure extends Error implements ModelFailureDetails {
  readonly reason: ModelFailureReason;
  readonly dispatched: boolean;
  readonly retryable: boolean;
  declare readonly refused?: boolean;
  declare readonly refusal?: string;
  declare readonly retryAfterMs?: number;
  declare readonly status?: number;
  declare readonly usage?: ModelUsage;
  declare readonly reportedInput?: ReportedInput;
  declare readonly generationId?: string;
  /** Cause to record. */
  readonly why: Cause;

  constructor(details: ModelFailureDetails, options: { cause?: unknown } = {}) {
    const why = details.why ?? textCause(details.message ?? '');
    super(textOf(why), options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'ModelFailure';
    this.reason = details.reason;
    this.why = why;
    this.dispatched = details.dispatched;
    this.retryable = details.retryable;
    if (details.refused === true && details.usage === undefined) this.refused = true;
    if (details.refusal !== undefined) this.refusal = details.refusal;
    if (details.retryAfterMs !== undefined) this.retryAfterMs = details.retryAfterMs;
    if (details.status !== undefined) this.status = details.status;
    if (details.usage !== undefined) this.usage = details.usage;
    else if (details.reportedInput !== undefined) this.reportedInput = details.reportedInput;
    if (details.generationId !== undefined) this.generationId = details.generationId;
  }
}

/**
 * Calls a provider through the adapter for `request.provider`. Makes one attempt: the driver does
 * retries, backoff and fallback, because each attempt is an event. Adapters limit their own time
 * (connect, first byte, idle between bytes) and fail with `provider_timeout`.
 */
export interface ModelPort {
  complete(request: ModelRequest, sink: ModelSink): Promise<ModelAnswer>;
  /** Makes a provider known to the methods below, if it exists. Costs nothing the next time. */
  open(provider: string, workspace: string): Promise<void>;
  /** Returns false for a provider that does not exist. A call to it fails, and has no bound. */
  knows(provider: string, workspace: string): boolean;
  /**
   * Returns an upper bound of the rendered prompt in tokens: a tokenizer's count where one is
   * known, else the UTF-8 bytes, plus overheads.
   */
  inputBound(prompt: ModelPrompt, workspace: string): number;
  /** Returns the formats that a model of a provider takes. */
  inputsOf(call: { readonly provider: string; readonly model: string }, workspace: string): ModelInputs;
  /** Returns the limits of a call to a model of a provider, with those of its agent. */
  limitsOf(call: { readonly provider: string; readonly model: string }, agent?: AgentLimits): DriverLimits;
  /** Returns the kind of a provider, so that clients can label `scripted` ones. */
  kindOf(provider: string, workspace: string): string;
  /** Returns the kind of a provider that was connected at run time; null for any other one. */
  connectedKindOf(provider: string, workspace: string): string | null;
}
