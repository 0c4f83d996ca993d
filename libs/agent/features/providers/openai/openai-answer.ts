import type { ModelAnswer, ModelUsage } from '@antiphon/agent-domain';
import type { AnswerBuilder } from '../transport/answer-builder.js';
import { brokenAnswer } from '../transport/failure.js';
import { countOf, fieldsOf, listOf, textOf, type Fields } from '../transport/fields.js';
import { assembleToolCalls } from './openai-tool-calls.js';

const FINISH: Readonly<Record<string, ModelAnswer['finishReason']>> = {
  stop: 'stop',
  tool_calls: 'tool_calls',
  function_call: 'tool_calls',
  length: 'length',
  content_filter: 'content_filter',
};

const readUsage = (value: Fields): ModelUsage | null => {
  const inputTokens = countOf(value['prompt_tokens']);
  const outputTokens = countOf(value['completion_tokens']);
  return inputTokens === null || outputTokens === null ? null : { inputTokens, outputTokens };
};

/** Folds the chunks of a completion, or a whole one, into an answer. */
export interface OpenAiReader {
  chunk(chunk: unknown): void;
  completion(completion: unknown): void;
  /** True once the model has said why it stopped. */
  isComplete(): boolean;
  usage(): ModelUsage | null;
  /** Throws a protocol failure unless the answer is whole. */
  finish(): ModelAnswer;
}

export const createOpenAiReader = (answer: AnswerBuilder): OpenAiReader => {
  const toolCalls = assembleToolCalls();
  let usage: ModelUsage | null = null;
  let finishReason: string | null = null;

  const readPart = (part: Fields): void => {
    // Reasoning has two names among compatible servers; a refusal is what the model says instead of an answer.
    answer.thought(textOf(part['reasoning_content']) || textOf(part['reasoning']));
    answer.text(textOf(part['content']));
    answer.text(textOf(part['refusal']));
    for (const piece of listOf(part['tool_calls'])) toolCalls.add(piece);
  };
  const read = (value: unknown, part: 'delta' | 'message'): boolean => {
    const fields = fieldsOf(value);
    answer.model(textOf(fields?.['model']));
    const given = fieldsOf(fields?.['usage']);
    // The last usage counts: some servers send a running total with every chunk.
    if (given !== undefined) usage = readUsage(given);
    const choice = listOf(fields?.['choices'])
      .map(fieldsOf)
      .find((one) => (one?.['index'] ?? 0) === 0);
    const content = fieldsOf(choice?.[part]);
    if (content !== undefined) readPart(content);
    const reason = choice?.['finish_reason'];
    if (typeof reason === 'string' && reason !== '') finishReason = reason;
    return content !== undefined;
  };
  return {
    chunk: (value) => void read(value, 'delta'),
    completion: (value) => {
      if (!read(value, 'message')) throw brokenAnswer("the provider's answer is not a completion");
      // A whole answer without a reason is still whole.
      finishReason ??= 'stop';
    },
    isComplete: () => finishReason !== null,
    usage: () => usage,
    finish: () => {
      if (finishReason === null) throw brokenAnswer('the provider ended its answer before it was complete');
      if (finishReason === 'error') throw brokenAnswer('the provider broke its answer off with an error');
      const known = Object.hasOwn(FINISH, finishReason) ? FINISH[finishReason] : undefined;
      return answer.finish({ toolCalls: toolCalls.result(), finishReason: known ?? 'other', usage });
    },
  };
};
