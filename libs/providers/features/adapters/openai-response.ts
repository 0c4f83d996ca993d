import { cacheTokensOf } from '@antiphon/kernel';
import type { ModelAnswer, ModelUsage } from '@antiphon/providers-domain';
import { ToolCallBounds, countOf, fieldsOf, listOf, textOf } from '../transport/answer-builder.js';
import type { AnswerBuilder, Fields, RawToolCall } from '../transport/answer-builder.js';
import { brokenAnswer } from '../transport/failures.js';

const FINISH_REASONS: Readonly<Record<string, ModelAnswer['finishReason']>> = {
  stop: 'stop',
  tool_calls: 'tool_calls',
  function_call: 'tool_calls',
  length: 'length',
  content_filter: 'content_filter',
};

/** Names of cached input among compatible servers: within the details, then next to them. */
const CACHE_READ = [
  ['cached_tokens'],
  // DeepSeek, Kimi, LiteLLM.
  ['prompt_cache_hit_tokens', 'cached_tokens', 'cache_read_input_tokens'],
] as const;
const CACHE_WRITE = [
  ['cache_write_tokens', 'cache_creation_tokens'],
  ['cache_creation_input_tokens'],
] as const;

const readCached = (
  usage: Fields,
  [inDetails, inUsage]: readonly [readonly string[], readonly string[]],
): number => {
  const details = fieldsOf(usage['prompt_tokens_details']);
  const values = [...inDetails.map((name) => details?.[name]), ...inUsage.map((name) => usage[name])];
  return values.map(countOf).find((count) => count !== null) ?? 0;
};

const readUsage = (value: Fields): ModelUsage | null => {
  const inputTokens = countOf(value['prompt_tokens']);
  const outputTokens = countOf(value['completion_tokens']);
  if (inputTokens === null || outputTokens === null) return null;
  // The input includes its cached parts: more than all of it cannot have been cached.
  const cacheReadTokens = Math.min(readCached(value, CACHE_READ), inputTokens);
  const cacheWriteTokens = Math.min(readCached(value, CACHE_WRITE), inputTokens - cacheReadTokens);
  return { inputTokens, ...cacheTokensOf({ cacheReadTokens, cacheWriteTokens }), outputTokens };
};

interface PartialToolCall {
  readonly index: unknown;
  id: string;
  name: string;
  json: string;
}

/**
 * Returns true for a piece with a name and an id of its own: some servers give every call the same
 * index.
 */
const startsNewCall = (call: PartialToolCall, id: string, name: string): boolean =>
  id !== '' && name !== '' && call.id !== '' && call.id !== id;

const toJson = (given: unknown): string => {
  if (typeof given === 'string') return given;
  // A few servers send the arguments as an object instead of as text.
  return given === undefined || given === null ? '' : JSON.stringify(given);
};

/**
 * Assembles tool calls from the pieces of a stream. Pieces belong together by `index`. Without one,
 * a piece with a name starts a call, and any other continues the last. The first id and name win.
 */
class ToolCallAssembly {
  private readonly calls: PartialToolCall[] = [];
  /** The newest call of each index. */
  private readonly newest = new Map<unknown, PartialToolCall>();
  private readonly bounds = new ToolCallBounds();

  add(piece: unknown): void {
    const fields = fieldsOf(piece);
    const target = fieldsOf(fields?.['function']);
    if (fields === undefined || (target === undefined && fields['id'] === undefined)) return;
    const [index, id, name] = [fields['index'], textOf(fields['id']), textOf(target?.['name'])];
    let call = this.find(index, name);
    if (call === undefined || startsNewCall(call, id, name)) call = this.begin({ index, id, name, json: '' });
    call.id ||= id;
    call.name ||= name;
    const json = toJson(target?.['arguments']);
    this.bounds.addInput(json);
    call.json += json;
  }

  result(): readonly RawToolCall[] {
    return this.calls;
  }

  private begin(call: PartialToolCall): PartialToolCall {
    this.bounds.addCall();
    this.calls.push(call);
    this.newest.set(call.index, call);
    return call;
  }

  private find(index: unknown, name: string): PartialToolCall | undefined {
    if (index !== undefined && index !== null) return this.newest.get(index);
    return name === '' ? this.calls.at(-1) : undefined;
  }
}

/** Collects the chunks of a completion, or a whole one, into an answer. */
export class OpenAiReader {
  private readonly toolCalls = new ToolCallAssembly();
  private lastUsage: ModelUsage | null = null;
  private finishReason: string | null = null;

  constructor(private readonly answer: AnswerBuilder) {}

  chunk(value: unknown): void {
    this.read(value, 'delta');
  }

  completion(value: unknown): void {
    if (!this.read(value, 'message')) throw brokenAnswer("the provider's answer is not a completion");
    // A whole answer is complete, also without a reason.
    this.finishReason ??= 'stop';
  }

  /** Returns true once the model has given its reason to stop. */
  isComplete(): boolean {
    return this.finishReason !== null;
  }

  usage(): ModelUsage | null {
    return this.lastUsage;
  }

  /** Returns the answer. Throws a protocol failure unless it is complete. */
  finish(): ModelAnswer {
    const { finishReason, lastUsage: usage } = this;
    if (finishReason === null) throw this.answer.incomplete();
    if (finishReason === 'error') throw brokenAnswer('the provider broke its answer off with an error');
    const known = Object.hasOwn(FINISH_REASONS, finishReason) ? FINISH_REASONS[finishReason] : undefined;
    return this.answer.finish({ toolCalls: this.toolCalls.result(), finishReason: known ?? 'other', usage });
  }

  /** Reads a chunk or a completion. Returns whether it has content. */
  private read(value: unknown, part: 'delta' | 'message'): boolean {
    const fields = fieldsOf(value);
    this.answer.model(textOf(fields?.['model']));
    const usage = fieldsOf(fields?.['usage']);
    // The last usage wins: some servers send a running total with every chunk.
    if (usage !== undefined) this.lastUsage = readUsage(usage);
    const choice = listOf(fields?.['choices'])
      .map(fieldsOf)
      .find((one) => (one?.['index'] ?? 0) === 0);
    const content = fieldsOf(choice?.[part]);
    if (content !== undefined) this.readContent(content);
    const reason = choice?.['finish_reason'];
    if (typeof reason === 'string' && reason !== '') this.finishReason = reason;
    return content !== undefined;
  }

  private readContent(content: Fields): void {
    // Reasoning has two names among compatible servers. A refusal replaces the model's text.
    this.answer.thought(textOf(content['reasoning_content']) || textOf(content['reasoning']));
    this.answer.text(textOf(content['content']));
    this.answer.text(textOf(content['refusal']));
    for (const piece of listOf(content['tool_calls'])) this.toolCalls.add(piece);
  }
}
