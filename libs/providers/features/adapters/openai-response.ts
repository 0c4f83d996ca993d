import { cacheTokensOf } from '@antiphon/kernel';
import type { ModelAnswer, ModelUsage } from '@antiphon/providers-domain';
import { countOf, fieldsOf, listOf, textOf } from '../transport/answer-builder.js';
import type { AnswerBuilder, Fields } from '../transport/answer-builder.js';
import { brokenAnswer } from '../transport/failures.js';
import { ReasoningState } from './openai-reasoning.js';
import { ToolCallAssembly } from './openai-tool-calls.js';

const FINISH_REASONS: Readonly<Record<string, ModelAnswer['finishReason']>> = {
  stop: 'stop',
  tool_calls: 'tool_calls',
  function_call: 'tool_calls',
  length: 'length',
  model_length: 'length',
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

/**
 * Reads the counts of tokens. Some vendors count reasoning apart from the completion: the total
 * shows it then.
 */
const readUsage = (value: Fields): ModelUsage | null => {
  const inputTokens = countOf(value['prompt_tokens']);
  const outputTokens = countOf(value['completion_tokens']);
  if (inputTokens === null || outputTokens === null) return null;
  // The input includes its cached parts: more than all of it cannot have been cached.
  const cacheReadTokens = Math.min(readCached(value, CACHE_READ), inputTokens);
  const cacheWriteTokens = Math.min(readCached(value, CACHE_WRITE), inputTokens - cacheReadTokens);
  const cached = cacheTokensOf({ cacheReadTokens, cacheWriteTokens });
  const reasoning = countOf(fieldsOf(value['completion_tokens_details'])?.['reasoning_tokens']) ?? 0;
  const isApart = countOf(value['total_tokens']) === inputTokens + outputTokens + reasoning;
  return { inputTokens, ...cached, outputTokens: isApart ? outputTokens + reasoning : outputTokens };
};

/** Texts of a content: a text, or a list of parts. */
const contentOf = (value: unknown): { readonly text: string; readonly thought: string } => {
  if (!Array.isArray(value)) return { text: textOf(value), thought: '' };
  const parts = listOf(value).map((part) => (typeof part === 'string' ? { text: part } : fieldsOf(part)));
  return {
    text: parts.map((part) => textOf(part?.['text'])).join(''),
    // Mistral puts its reasoning into parts of parts.
    thought: parts.map((part) => contentOf(part?.['thinking']).text).join(''),
  };
};

/** Returns the error that a chunk is, in the forms of servers; undefined for a part of an answer. */
export const errorOf = (value: unknown): unknown => {
  const chunk = fieldsOf(value);
  if (chunk?.['error']) return chunk['error'];
  if (chunk === undefined || 'choices' in chunk) return undefined;
  const hasCode = 'code' in chunk && typeof chunk['message'] === 'string';
  return chunk['object'] === 'error' || 'detail' in chunk || hasCode ? chunk : undefined;
};

/** Maximum length of the id of an answer, and its characters. */
const MAX_ID = 200;
const PLAIN_ID = /^[\x21-\x7e]+$/;

/** Collects the chunks of a completion, or a whole one, into an answer. */
export class OpenAiReader {
  private readonly toolCalls = new ToolCallAssembly();
  private readonly reasoning = new ReasoningState();
  private lastUsage: ModelUsage | null = null;
  private finishReason: string | null = null;
  private hasContent = false;
  private id = '';

  constructor(private readonly answer: AnswerBuilder) {}

  chunk(value: unknown): void {
    this.read(value, 'delta');
  }

  completion(value: unknown): void {
    if (!this.read(value, 'message')) throw brokenAnswer('not_completion');
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

  /** Returns the id that the server gave the answer; null before it is known. */
  generationId(): string | null {
    return PLAIN_ID.test(this.id) ? this.id : null;
  }

  /** Returns the answer. Throws a protocol failure unless it is complete. */
  finish(): ModelAnswer {
    const { finishReason, lastUsage: usage } = this;
    if (finishReason === null) throw this.answer.incomplete();
    if (finishReason === 'error') throw brokenAnswer('ended_by_error');
    const known = Object.hasOwn(FINISH_REASONS, finishReason) ? FINISH_REASONS[finishReason] : undefined;
    const toolCalls = this.toolCalls.result();
    const answer = this.answer.finish({ toolCalls, finishReason: known ?? 'other', usage });
    const providerState = this.reasoning.toState(answer.thought, toolCalls);
    return providerState === null ? answer : { ...answer, providerState };
  }

  /** Reads a chunk or a completion. Returns whether it has content. */
  private read(value: unknown, part: 'delta' | 'message'): boolean {
    const fields = fieldsOf(value);
    this.answer.model(textOf(fields?.['model']));
    this.id ||= textOf(fields?.['id']).slice(0, MAX_ID);
    const choice = listOf(fields?.['choices'])
      .map(fieldsOf)
      .find((one) => (one?.['index'] ?? 0) === 0);
    // Kimi has it in the choice, Groq in a field of its own.
    const usage = [fields, choice, fieldsOf(fields?.['x_groq'])]
      .map((at) => fieldsOf(at?.['usage']))
      .find(Boolean);
    // The last usage wins: some servers send a running total with every chunk.
    if (usage !== undefined) this.lastUsage = readUsage(usage);
    // A server that does not stream sends one whole message; others repeat it at the end.
    const content = fieldsOf(choice?.[part]) ?? (this.hasContent ? undefined : fieldsOf(choice?.['message']));
    if (content !== undefined) this.readContent(content);
    const reason = choice?.['finish_reason'];
    if (typeof reason === 'string' && reason !== '') this.finishReason = reason;
    return content !== undefined;
  }

  private readContent(content: Fields): void {
    const { text, thought } = contentOf(content['content']);
    this.answer.thought(this.reasoning.read(content) || thought);
    this.answer.text(text);
    // A refusal replaces the model's text.
    this.answer.text(textOf(content['refusal']));
    const calls = listOf(content['tool_calls']);
    if (calls.length > 0) this.answer.begin();
    for (const piece of calls) this.toolCalls.add(piece);
    this.toolCalls.addFunction(content['function_call']);
    this.hasContent = true;
  }
}
