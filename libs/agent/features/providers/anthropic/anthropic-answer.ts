import type { ModelAnswer, ModelUsage } from '@antiphon/agent-domain';
import type { AnswerBuilder, RawToolCall } from '../transport/answer-builder.js';
import { brokenAnswer } from '../transport/failure.js';
import { fieldsOf, listOf, textOf, type Fields } from '../transport/fields.js';
import { createUsageReader } from './anthropic-usage.js';

const FINISH: Readonly<Record<string, ModelAnswer['finishReason']>> = {
  end_turn: 'stop',
  stop_sequence: 'stop',
  tool_use: 'tool_calls',
  max_tokens: 'length',
  model_context_window_exceeded: 'length',
  refusal: 'content_filter',
};

interface Block {
  readonly type: string;
  readonly id: string;
  readonly name: string;
  /** What the block's start carried: complete from servers that do not stream a tool's input. */
  readonly given: unknown;
  json: string;
  open: boolean;
}

const newBlock = (content: Fields): Block => ({
  type: textOf(content['type']),
  id: textOf(content['id']),
  name: textOf(content['name']),
  given: content['input'],
  json: '',
  open: true,
});

const toolCallOf = (block: Block): RawToolCall => ({
  id: block.id,
  name: block.name,
  json: block.json === '' && block.given !== undefined ? JSON.stringify(block.given) : block.json,
});

/** Folds the events of a Messages stream, or one whole message, into an answer. */
export interface AnthropicReader {
  event(event: unknown): void;
  message(message: unknown): void;
  /** True once the stream has said why the model stopped, with every block closed. */
  isComplete(): boolean;
  usage(): ModelUsage | null;
  /** Throws a protocol failure unless the answer is whole. */
  finish(): ModelAnswer;
}

export const createAnthropicReader = (answer: AnswerBuilder): AnthropicReader => {
  const usage = createUsageReader();
  const blocks = new Map<unknown, Block>();
  let stopReason: string | null = null;

  const startBlock = (event: Fields): void => {
    const content = fieldsOf(event['content_block']);
    if (content === undefined || blocks.has(event['index']))
      throw brokenAnswer('a content block began twice');
    blocks.set(event['index'], newBlock(content));
    answer.text(content['type'] === 'text' ? textOf(content['text']) : '');
    answer.thought(content['type'] === 'thinking' ? textOf(content['thinking']) : '');
  };
  const growBlock = (event: Fields): void => {
    const block = blocks.get(event['index']);
    const delta = fieldsOf(event['delta']);
    if (block?.open !== true || delta === undefined) throw brokenAnswer('a delta without its content block');
    if (delta['type'] === 'text_delta') answer.text(textOf(delta['text']));
    else if (delta['type'] === 'thinking_delta') answer.thought(textOf(delta['thinking']));
    else if (delta['type'] === 'input_json_delta') block.json += textOf(delta['partial_json']);
  };
  const noteStop = (reason: unknown): void => {
    if (typeof reason === 'string') stopReason = reason;
  };
  const handlers: Readonly<Record<string, (event: Fields) => void>> = {
    message_start: (event) => {
      const message = fieldsOf(event['message']);
      answer.model(textOf(message?.['model']));
      usage.read(message?.['usage'], false);
    },
    content_block_start: startBlock,
    content_block_delta: growBlock,
    content_block_stop: (event) => {
      const block = blocks.get(event['index']);
      if (block !== undefined) block.open = false;
    },
    message_delta: (event) => {
      usage.read(event['usage'], true);
      noteStop(fieldsOf(event['delta'])?.['stop_reason']);
    },
  };
  const isComplete = (): boolean => stopReason !== null && [...blocks.values()].every((block) => !block.open);

  return {
    // Kinds of events that we do not know are the vendor's future, and are passed over.
    event: (value) => {
      const event = fieldsOf(value);
      if (event !== undefined) handlers[textOf(event['type'])]?.(event);
    },
    message: (value) => {
      const message = fieldsOf(value);
      if (message === undefined || !Array.isArray(message['content']))
        throw brokenAnswer("the provider's answer is not a message");
      for (const [index, content] of listOf(message['content']).entries()) {
        startBlock({ index, content_block: content });
        handlers['content_block_stop']?.({ index });
      }
      answer.model(textOf(message['model']));
      usage.read(message['usage'], true);
      noteStop(message['stop_reason']);
    },
    isComplete,
    usage: usage.result,
    finish: () => {
      if (!isComplete() || stopReason === null)
        throw brokenAnswer('the provider ended its answer before it was complete');
      const toolCalls = [...blocks.values()].filter((block) => block.type === 'tool_use').map(toolCallOf);
      const finishReason = Object.hasOwn(FINISH, stopReason) ? FINISH[stopReason] : undefined;
      return answer.finish({ toolCalls, finishReason: finishReason ?? 'other', usage: usage.result() });
    },
  };
};
