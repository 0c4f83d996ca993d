import type { ModelAnswer, ModelSink, ModelUsage, RequestedToolCall } from '@antiphon/agent-domain';
import {
  FORBIDDEN_KEYS,
  nestsDeeperThan,
  toStorable,
  toStorableJson,
  type JsonValue,
} from '@antiphon/kernel';
import { brokenAnswer } from './failure.js';

const isHighSurrogate = (code: number): boolean => code >= 0xd800 && code <= 0xdbff;

/**
 * Passes deltas on as the log can keep them. A surrogate pair that was cut between two deltas is joined again
 * before lone halves are replaced, so that an emoji survives any chunking.
 */
const createChannel = (emit: (delta: string) => void) => {
  let text = '';
  let half = '';
  const pass = (delta: string): void => {
    if (delta === '') return;
    const clean = toStorable(delta);
    text += clean;
    emit(clean);
  };
  return {
    push: (delta: string): void => {
      const whole = half + delta;
      const keep = isHighSurrogate(whole.charCodeAt(whole.length - 1));
      half = keep ? whole.slice(-1) : '';
      pass(keep ? whole.slice(0, -1) : whole);
    },
    finish: (): string => {
      pass(half);
      half = '';
      return text;
    },
  };
};

const isForbidden = (text: string): boolean => text.includes('__proto__') || text.includes('\\u');

const parse = (json: string): JsonValue =>
  (isForbidden(json)
    ? JSON.parse(json, (key, value: unknown) => (FORBIDDEN_KEYS.has(key) ? undefined : value))
    : JSON.parse(json)) as JsonValue;

const isObject = (value: JsonValue): boolean =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/**
 * The input of a tool call from the model's own JSON: an object, or nothing at all for `{}`.
 * Throws a protocol failure for anything else; `length` tells that the model had run out of tokens.
 */
export const parseToolInput = (
  name: string,
  json: string,
  finishReason: ModelAnswer['finishReason'],
): JsonValue => {
  if (json.trim() === '') return {};
  const cut = finishReason === 'length';
  const refuse = (what: string) =>
    brokenAnswer(`the model's input for tool ${JSON.stringify(toStorable(name).slice(0, 64))} ${what}`, {
      retryable: !cut,
    });
  if (nestsDeeperThan(json)) throw refuse('nests too deep');
  let input: JsonValue;
  try {
    input = parse(json);
  } catch {
    throw refuse(cut ? 'was cut at max_tokens' : 'is not valid JSON');
  }
  if (!isObject(input)) throw refuse('is not a JSON object');
  return toStorableJson(input);
};

/** A tool call whose input is still text. */
export interface RawToolCall {
  readonly id: string;
  readonly name: string;
  readonly json: string;
}

const finishToolCall = (call: RawToolCall, finishReason: ModelAnswer['finishReason']): RequestedToolCall => {
  if (call.name === '') throw brokenAnswer('the model asked for a tool without a name');
  return {
    providerCallId: toStorable(call.id),
    name: toStorable(call.name),
    input: parseToolInput(call.name, call.json, finishReason),
  };
};

/** Gathers what the model says, telling the sink of it, until it is a whole answer. */
export interface AnswerBuilder {
  text(delta: string): void;
  thought(delta: string): void;
  /** The model's own name for itself; the last one counts. */
  model(name: string): void;
  finish(end: {
    readonly toolCalls: readonly RawToolCall[];
    readonly finishReason: ModelAnswer['finishReason'];
    readonly usage: ModelUsage | null;
  }): ModelAnswer;
}

export const createAnswerBuilder = (sink: ModelSink): AnswerBuilder => {
  let model = '';
  const text = createChannel((delta) => sink.onText(delta));
  const thought = createChannel((delta) => sink.onThought(delta));
  return {
    text: text.push,
    thought: thought.push,
    model: (name) => void (model = name || model),
    finish: ({ toolCalls, finishReason, usage }) => {
      const calls = toolCalls.map((call) => finishToolCall(call, finishReason));
      return {
        thought: thought.finish(),
        text: text.finish(),
        toolCalls: calls,
        // Some servers say `stop` when they ask for tools.
        finishReason: calls.length > 0 && finishReason === 'stop' ? 'tool_calls' : finishReason,
        usage,
        ...(model === '' ? {} : { model }),
      };
    },
  };
};
