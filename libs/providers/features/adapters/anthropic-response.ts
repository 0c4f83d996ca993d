import { cacheTokensOf } from '@antiphon/kernel';
import type { ModelAnswer, ModelUsage, ReportedInput } from '@antiphon/providers-domain';
import { ToolCallBounds, countOf, fieldsOf, listOf, textOf } from '../transport/answer-builder.js';
import type { AnswerBuilder, Fields, RawToolCall } from '../transport/answer-builder.js';
import { brokenAnswer } from '../transport/failures.js';

const FINISH_REASONS: Readonly<Record<string, ModelAnswer['finishReason']>> = {
  end_turn: 'stop',
  stop_sequence: 'stop',
  tool_use: 'tool_calls',
  max_tokens: 'length',
  model_context_window_exceeded: 'length',
  refusal: 'content_filter',
};

/** Part of the tokens written that the cache keeps for an hour. */
const HOUR_FIELD = 'ephemeral_1h_input_tokens';
const INPUT_FIELDS = ['input_tokens', 'cache_creation_input_tokens', 'cache_read_input_tokens'] as const;

/**
 * Reads Anthropic's cumulative usage: the last value of each field wins. A field that is not a
 * count makes the whole usage unknown.
 */
class UsageReader {
  private readonly counts = new Map<string, number | null>();

  /** @param isFinal true for a `message_delta` or a whole message: only these know the output */
  read(value: unknown, isFinal: boolean): void {
    const fields = fieldsOf(value);
    if (fields === undefined) return;
    for (const name of INPUT_FIELDS) this.note(fields, name);
    const writes = fieldsOf(fields['cache_creation']);
    if (writes !== undefined) this.note(writes, HOUR_FIELD);
    if (isFinal) this.note(fields, 'output_tokens');
  }

  result(): ModelUsage | null {
    const outputTokens = this.counts.get('output_tokens');
    const input = this.input();
    return input === null || outputTokens === undefined || outputTokens === null
      ? null
      : { ...input, outputTokens };
  }

  /** Returns the input, which is known before the output; null if it is not known. */
  input(): ReportedInput | null {
    const inputs = INPUT_FIELDS.map((name) => this.counts.get(name));
    if (inputs[0] === undefined || inputs.includes(null)) return null;
    const [fresh = 0, written = 0, read = 0] = inputs.map((count) => count ?? 0);
    const hour = Math.min(this.counts.get(HOUR_FIELD) ?? 0, written);
    const cached = { cacheReadTokens: read, cacheWriteTokens: written, cacheWrite1hTokens: hour };
    return { inputTokens: fresh + written + read, ...cacheTokensOf(cached) };
  }

  private note(fields: Fields, name: string): void {
    const value = fields[name];
    if (value !== undefined && value !== null) this.counts.set(name, countOf(value));
  }
}

/** More blocks than an answer has: calls are bounded, and texts and thoughts lie between them. */
const MAX_BLOCKS = 1_000;

interface Block {
  readonly type: string;
  readonly id: string;
  readonly name: string;
  /** Input within the block's start: complete from servers that do not stream a tool's input. */
  readonly input: unknown;
  json: string;
  isOpen: boolean;
}

const toToolCall = (block: Block): RawToolCall => ({
  id: block.id,
  name: block.name,
  json: block.json === '' && block.input !== undefined ? JSON.stringify(block.input) : block.json,
});

/** Collects the events of a Messages stream, or one whole message, into an answer. */
export class AnthropicReader {
  private readonly usageReader = new UsageReader();
  private readonly blocks = new Map<unknown, Block>();
  private readonly bounds = new ToolCallBounds();
  /** Counted, because every event after the reason to stop asks for it. */
  private openBlocks = 0;
  private stopReason: string | null = null;

  constructor(private readonly answer: AnswerBuilder) {}

  /** Reads one event. Events of unknown types are ignored, for later versions of the API. */
  event(value: unknown): void {
    const event = fieldsOf(value);
    switch (event?.['type']) {
      case 'message_start':
        return this.startMessage(event);
      case 'content_block_start':
        return this.startBlock(event['index'], event['content_block']);
      case 'content_block_delta':
        return this.extendBlock(event['index'], event['delta']);
      case 'content_block_stop':
        return this.stopBlock(event['index']);
      case 'message_delta':
        this.usageReader.read(event['usage'], true);
        return this.noteStopReason(fieldsOf(event['delta'])?.['stop_reason']);
    }
  }

  /** Reads a whole message. */
  message(value: unknown): void {
    const message = fieldsOf(value);
    if (message === undefined || !Array.isArray(message['content']))
      throw brokenAnswer("the provider's answer is not a message");
    for (const [index, content] of listOf(message['content']).entries()) {
      this.startBlock(index, content);
      this.stopBlock(index);
    }
    this.answer.model(textOf(message['model']));
    this.usageReader.read(message['usage'], true);
    this.noteStopReason(message['stop_reason']);
  }

  /** Returns true once the model has given its reason to stop and every block is closed. */
  isComplete(): boolean {
    return this.stopReason !== null && this.openBlocks === 0;
  }

  usage(): ModelUsage | null {
    return this.usageReader.result();
  }

  /** Returns the input that was reported, also of a message that is not complete. */
  reportedInput(): ReportedInput | null {
    return this.usageReader.input();
  }

  /** Returns the answer. Throws a protocol failure unless it is complete. */
  finish(): ModelAnswer {
    const { stopReason } = this;
    if (stopReason === null || !this.isComplete()) throw this.answer.incomplete();
    const toolCalls = [...this.blocks.values()].filter((block) => block.type === 'tool_use').map(toToolCall);
    const known = Object.hasOwn(FINISH_REASONS, stopReason) ? FINISH_REASONS[stopReason] : undefined;
    const [usage, reportedInput] = [this.usage(), this.reportedInput()];
    return this.answer.finish({ toolCalls, finishReason: known ?? 'other', usage, reportedInput });
  }

  private startMessage(event: Fields): void {
    const message = fieldsOf(event['message']);
    this.answer.model(textOf(message?.['model']));
    this.usageReader.read(message?.['usage'], false);
  }

  private startBlock(index: unknown, value: unknown): void {
    const content = fieldsOf(value);
    if (content === undefined || this.blocks.has(index)) throw brokenAnswer('a content block began twice');
    if (this.blocks.size === MAX_BLOCKS)
      throw brokenAnswer(`the answer has over ${MAX_BLOCKS} content blocks`);
    if (content['type'] === 'tool_use') this.bounds.addCall();
    this.openBlocks++;
    this.blocks.set(index, {
      type: textOf(content['type']),
      id: textOf(content['id']),
      name: textOf(content['name']),
      input: content['input'],
      json: '',
      isOpen: true,
    });
    if (content['type'] === 'text') this.answer.text(textOf(content['text']));
    else if (content['type'] === 'thinking') this.answer.thought(textOf(content['thinking']));
  }

  private extendBlock(index: unknown, value: unknown): void {
    const block = this.blocks.get(index);
    const delta = fieldsOf(value);
    if (block?.isOpen !== true || delta === undefined)
      throw brokenAnswer('a delta without its content block');
    if (delta['type'] === 'text_delta') this.answer.text(textOf(delta['text']));
    else if (delta['type'] === 'thinking_delta') this.answer.thought(textOf(delta['thinking']));
    else if (delta['type'] === 'input_json_delta') {
      const json = textOf(delta['partial_json']);
      this.bounds.addInput(json);
      block.json += json;
    }
  }

  private stopBlock(index: unknown): void {
    const block = this.blocks.get(index);
    if (block?.isOpen !== true) return;
    block.isOpen = false;
    this.openBlocks--;
  }

  private noteStopReason(reason: unknown): void {
    if (typeof reason === 'string') this.stopReason = reason;
  }
}
