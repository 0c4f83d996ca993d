import { MAX_CALLS_PER_STEP } from '@antiphon/providers-domain';
import type {
  ModelAnswer,
  ModelFailure,
  ModelSink,
  ModelUsage,
  ReportedInput,
  RequestedToolCall,
} from '@antiphon/providers-domain';
import { FORBIDDEN_KEYS, findJsonExcess, toStorable, toStorableJson, type JsonValue } from '@antiphon/kernel';
import { parseJson } from './error-text.js';
import { brokenAnswer } from './failures.js';

/** An object that a provider sent. Its values need not have the types that the vendor promises. */
export type Fields = Readonly<Record<string, unknown>>;

export const fieldsOf = (value: unknown): Fields | undefined =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : undefined;

export const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');

export const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

/** More tokens than any call can use. A larger count is invalid and could overflow the ledger. */
const MAX_TOKENS = 1_000_000_000;

/**
 * Returns a count of tokens, or null for any other value: negative, fractional, too large, text.
 */
export const countOf = (value: unknown): number | null =>
  typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= MAX_TOKENS ? value : null;

const isHighSurrogate = (code: number): boolean => code >= 0xd800 && code <= 0xdbff;

/**
 * Emits deltas as storable text. The halves of a surrogate pair in two deltas are joined before
 * lone halves are replaced, so that an emoji survives any chunking.
 */
class TextChannel {
  private text = '';
  private pendingHalf = '';

  constructor(private readonly emit: (delta: string) => void) {}

  push(delta: string): void {
    const whole = this.pendingHalf + delta;
    const endsInHalf = isHighSurrogate(whole.charCodeAt(whole.length - 1));
    this.pendingHalf = endsInHalf ? whole.slice(-1) : '';
    this.append(endsInHalf ? whole.slice(0, -1) : whole);
  }

  finish(): string {
    this.append(this.pendingHalf);
    this.pendingHalf = '';
    return this.text;
  }

  private append(delta: string): void {
    if (delta === '') return;
    const clean = toStorable(delta);
    this.text += clean;
    this.emit(clean);
  }
}

const isForbidden = (text: string): boolean => text.includes('__proto__') || text.includes('\\u');

const parse = (json: string): JsonValue =>
  (isForbidden(json)
    ? JSON.parse(json, (key, value: unknown) => (FORBIDDEN_KEYS.has(key) ? undefined : value))
    : JSON.parse(json)) as JsonValue;

const isObject = (value: JsonValue | undefined): boolean =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const tryParse = (json: string): JsonValue | undefined => {
  try {
    return parse(json);
  } catch {
    return undefined;
  }
};

/** Empty object that some proxies send before the arguments, which stream afterwards. */
const EMPTY_PREFIX = '{}';
const withoutPrefix = (json: string): string =>
  json.startsWith(EMPTY_PREFIX) ? json.slice(EMPTY_PREFIX.length) : json;

/**
 * Parses the arguments of a call. Undefined for text that is not JSON. An object as a JSON text
 * within JSON is that object: some servers encode the arguments twice.
 */
const parseArguments = (json: string): JsonValue | undefined => {
  const value = tryParse(json) ?? tryParse(withoutPrefix(json));
  if (typeof value !== 'string' || findJsonExcess(value) !== null) return value;
  const inner = tryParse(value);
  return isObject(inner) ? inner : value;
};

type ToolInput = Pick<RequestedToolCall, 'input' | 'problem'>;
type ToolCallProblem = NonNullable<RequestedToolCall['problem']>;

/**
 * Parses the model's JSON for a tool call's input: an object. Blank text and `null` are `{}`:
 * models write them for a tool without parameters. Any other text is a problem of this call alone.
 */
const parseToolInput = (json: string): ToolInput => {
  if (json.trim() === '') return { input: {} };
  if (findJsonExcess(json) !== null) return { input: {}, problem: 'too_complex' };
  const input = parseArguments(json);
  if (input === undefined) return { input: {}, problem: 'not_json' };
  if (input === null) return { input: {} };
  return isObject(input) ? { input: toStorableJson(input) } : { input: {}, problem: 'not_object' };
};

/** Text of the event that ends a stream in OpenAI's format. */
export const END_OF_STREAM = '[DONE]';

const FIELD = 'data:';

/** Removes the names of fields that a proxy has put before the data again. */
const withoutField = (data: string): string => {
  let rest = data.trimStart();
  while (rest.startsWith(FIELD)) rest = rest.slice(FIELD.length).trimStart();
  return rest;
};

/** A tool call with its input as JSON text. */
export interface RawToolCall {
  readonly id: string;
  readonly name: string;
  readonly json: string;
}

/** Maximum length of the inputs of all tool calls of an answer, UTF-16 units. */
const MAX_TOOL_INPUT = 2 * 1024 * 1024;

/** Bounds the tool calls of an answer while it arrives. Throws a protocol failure beyond them. */
export class ToolCallBounds {
  private calls = 0;
  private input = 0;

  addCall(): void {
    if (++this.calls > MAX_CALLS_PER_STEP)
      throw brokenAnswer('too_many_calls', { detail: MAX_CALLS_PER_STEP });
  }

  addInput(json: string): void {
    this.input += json.length;
    if (this.input > MAX_TOOL_INPUT) throw brokenAnswer('arguments_too_long', { retryable: false });
  }
}

/** Name of a call without one. No tool has it, so that the model gets an error as the result. */
const UNNAMED_TOOL = 'unnamed_tool';

/** @param problem of a call whose arguments may not be whole, also if they are valid JSON */
const finishToolCall = (call: RawToolCall, problem: ToolCallProblem | null): RequestedToolCall => {
  return {
    providerCallId: toStorable(call.id),
    name: toStorable(call.name.trim()) || UNNAMED_TOOL,
    ...(problem ? { input: {}, problem } : parseToolInput(call.json)),
  };
};

interface AnswerEnd {
  readonly toolCalls: readonly RawToolCall[];
  readonly finishReason: ModelAnswer['finishReason'];
  readonly usage: ModelUsage | null;
  /** Input that was reported without the output. */
  readonly reportedInput?: ReportedInput | null;
}

/** Builds an answer from deltas and passes each delta to the sink. */
export class AnswerBuilder {
  private modelName = '';
  private readonly textChannel: TextChannel;
  private readonly thoughtChannel: TextChannel;
  private skipped = 0;
  private hasLostPart = false;
  private begun = false;

  constructor(sink: ModelSink) {
    this.textChannel = new TextChannel((delta) => sink.onText(delta));
    this.thoughtChannel = new TextChannel((delta) => sink.onThought(delta));
  }

  /** True once a part of the answer has arrived: the model has worked, and may be billed. */
  get hasBegun(): boolean {
    return this.begun;
  }

  /** Notes that a tool call has begun to arrive. */
  begin(): void {
    this.begun = true;
  }

  text(delta: string): void {
    this.begun ||= delta !== '';
    this.textChannel.push(delta);
  }

  thought(delta: string): void {
    this.begun ||= delta !== '';
    this.thoughtChannel.push(delta);
  }

  /**
   * Parses the data of an event: one JSON value, or one in each line from a server that forgets the
   * empty lines. Text that is not JSON, such as a keep-alive of a proxy, is skipped. The error of
   * an answer that stays incomplete has their number.
   */
  parseEvent(data: string): readonly unknown[] {
    const whole = parseJson(withoutField(data));
    if (whole !== undefined) return [whole];
    return data.split('\n').flatMap((line) => this.parseLine(withoutField(line)));
  }

  private parseLine(line: string): readonly unknown[] {
    if (line.trim() === '' || line.startsWith(END_OF_STREAM)) return [];
    const value = parseJson(line);
    if (value !== undefined) return [value];
    this.skipped += 1;
    // A keep-alive is not an object. A part of the answer that broke is.
    if (line.trimStart().startsWith('{')) this.hasLostPart = true;
    return [];
  }

  /** Returns the failure of a stream that ended without the model's reason to stop. */
  incomplete(): ModelFailure {
    return brokenAnswer('incomplete', { detail: this.skipped });
  }

  /** Notes the model's own name. The last one wins. */
  model(name: string): void {
    this.modelName = name || this.modelName;
  }

  finish({ toolCalls, finishReason, usage, reportedInput }: AnswerEnd): ModelAnswer {
    const isCut = (index: number): boolean => finishReason === 'length' && index === toolCalls.length - 1;
    const calls = toolCalls.map((call, index) =>
      finishToolCall(call, this.hasLostPart ? 'incomplete' : isCut(index) ? 'cut' : null),
    );
    return {
      thought: this.thoughtChannel.finish(),
      text: this.textChannel.finish(),
      toolCalls: calls,
      // Some servers send `stop` with a request for tools.
      finishReason: calls.length > 0 && finishReason === 'stop' ? 'tool_calls' : finishReason,
      usage,
      ...(usage === null && reportedInput ? { reportedInput } : {}),
      ...(this.modelName === '' ? {} : { model: this.modelName }),
    };
  }
}
