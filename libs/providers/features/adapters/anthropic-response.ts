import { cacheTokensOf } from '@antiphon/kernel';
import type { ModelAnswer, ModelUsage, ReportedInput } from '@antiphon/providers-domain';
import { ToolCallBounds, countOf, fieldsOf, listOf, textOf } from '../transport/answer-builder.js';
import type { AnswerBuilder, Fields, RawToolCall } from '../transport/answer-builder.js';
import { brokenAnswer } from '../transport/failures.js';
import { joinSignature, stateOfParts } from './anthropic-state.js';
import type { AnswerPart } from './anthropic-state.js';

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

interface Block extends AnswerPart {
  readonly id: string;
  readonly name: string;
  /** Input within the block's start: complete from servers that do not stream a tool's input. */
  readonly input: unknown;
  json: string;
  isOpen: boolean;
}

/** Types of blocks by the deltas that only they have, for servers that forget the block's start. */
const BLOCK_OF_DELTA: Readonly<Record<string, string>> = {
  text_delta: 'text',
  thinking_delta: 'thinking',
  signature_delta: 'thinking',
};

const toToolCall = (block: Block): RawToolCall => ({
  id: block.id,
  name: block.name,
  json: block.json === '' && block.input !== undefined ? JSON.stringify(block.input) : block.json,
});

/** Collects the events of a Messages stream, or one whole message, into an answer. */
export class AnthropicReader {
  private readonly usageReader = new UsageReader();
  private readonly blocks: Block[] = [];
  /** The newest block of each index. */
  private readonly newest = new Map<unknown, Block>();
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
      case 'message_stop':
        return this.stopAll();
    }
  }

  /** Reads a whole message. */
  message(value: unknown): void {
    const message = fieldsOf(value);
    if (message === undefined || !Array.isArray(message['content'])) throw brokenAnswer('not_message');
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
    const toolCalls = this.blocks.filter((block) => block.type === 'tool_use').map(toToolCall);
    const known = Object.hasOwn(FINISH_REASONS, stopReason) ? FINISH_REASONS[stopReason] : undefined;
    const [usage, reportedInput] = [this.usage(), this.reportedInput()];
    const end = { toolCalls, finishReason: known ?? 'other', usage, reportedInput } as const;
    const answer = this.answer.finish(end);
    const providerState = stateOfParts(this.blocks, answer.thought);
    return providerState === null ? answer : { ...answer, providerState };
  }

  private startMessage(event: Fields): void {
    const message = fieldsOf(event['message']);
    this.answer.model(textOf(message?.['model']));
    this.usageReader.read(message?.['usage'], false);
  }

  private startBlock(index: unknown, value: unknown): void {
    const content = fieldsOf(value);
    // Some servers give every block the same index.
    if (content === undefined || this.newest.get(index)?.isOpen === true) throw brokenAnswer('block_twice');
    const type = textOf(content['type']);
    const block = this.addBlock(index, type, content);
    if (type === 'text') this.addText(block, content['text']);
    else if (type === 'thinking') this.addThinking(block, content['thinking']);
  }

  private addBlock(index: unknown, type: string, content: Fields): Block {
    if (this.blocks.length === MAX_BLOCKS) throw brokenAnswer('too_many_blocks', { detail: MAX_BLOCKS });
    if (type === 'tool_use') {
      this.answer.begin();
      this.bounds.addCall();
    }
    this.openBlocks++;
    const [id, name] = [textOf(content['id']), textOf(content['name'])];
    const signature = textOf(content['signature']);
    const block: Block = {
      ...{ type, id, name, content, input: content['input'], json: '', isOpen: true },
      ...{ text: '', signature },
    };
    this.blocks.push(block);
    this.newest.set(index, block);
    return block;
  }

  private extendBlock(index: unknown, value: unknown): void {
    const delta = fieldsOf(value);
    const type = textOf(delta?.['type']);
    const open = this.newest.get(index);
    const missing = Object.hasOwn(BLOCK_OF_DELTA, type) ? BLOCK_OF_DELTA[type] : undefined;
    const block =
      open?.isOpen !== true && missing !== undefined
        ? this.addBlock(index, missing, { type: missing })
        : open;
    if (block?.isOpen !== true || delta === undefined) throw brokenAnswer('delta_alone');
    if (type === 'text_delta') this.addText(block, delta['text']);
    else if (type === 'thinking_delta') this.addThinking(block, delta['thinking']);
    else if (type === 'signature_delta')
      block.signature = joinSignature(block.signature, textOf(delta['signature']));
    else if (type === 'input_json_delta') {
      const json = textOf(delta['partial_json']);
      this.bounds.addInput(json);
      block.json += json;
    }
  }

  private addText(block: Block, value: unknown): void {
    const text = textOf(value);
    block.text += text;
    this.answer.text(text);
  }

  private addThinking(block: Block, value: unknown): void {
    const text = textOf(value);
    block.text += text;
    this.answer.thought(text);
  }

  private stopBlock(index: unknown): void {
    const block = this.newest.get(index);
    if (block?.isOpen !== true) return;
    block.isOpen = false;
    this.openBlocks--;
  }

  /** Ends blocks whose own end a server forgot. */
  private stopAll(): void {
    for (const index of this.newest.keys()) this.stopBlock(index);
  }

  private noteStopReason(reason: unknown): void {
    if (typeof reason === 'string') this.stopReason = reason;
  }
}
