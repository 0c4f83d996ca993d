import type { AssistantMessage } from '@antiphon/providers-domain';
import { fieldsOf, listOf, textOf } from '../transport/answer-builder.js';
import type { Fields, RawToolCall } from '../transport/answer-builder.js';
import { parseJson } from '../transport/error-text.js';
import { isPortableId } from '../transport/request-format.js';

/** Fields of a message with its reasoning as text, in the order of their preference. */
const TEXT_FIELDS = ['reasoning_content', 'reasoning'] as const;
/** Fields with a list of parts, some of them signed or encrypted: of OpenRouter and of LiteLLM. */
const LIST_FIELDS = ['reasoning_details', 'thinking_blocks'] as const;
/** Fields of a part whose pieces are joined. Encrypted data arrives whole. */
const JOINED = ['text', 'summary', 'thinking'] as const;

type Part = Record<string, unknown>;

/** Returns true for a piece that continues the last part of its list. */
const continues = (last: Part | undefined, piece: Fields): boolean =>
  last !== undefined &&
  last['type'] === piece['type'] &&
  typeof piece['data'] !== 'string' &&
  last['index'] === piece['index'] &&
  (piece['id'] === undefined || piece['id'] === null || piece['id'] === last['id']) &&
  // A signature ends a part.
  (typeof last['signature'] !== 'string' || last['signature'] === '' || piece['index'] !== undefined);

const extend = (part: Part, piece: Fields): void => {
  for (const [name, value] of Object.entries(piece)) {
    const known = part[name];
    if ((value === null || value === '') && known !== undefined) continue;
    const isJoined = (JOINED as readonly string[]).includes(name) && typeof known === 'string';
    Object.defineProperty(part, name, {
      value: isJoined && typeof value === 'string' ? known + value : value,
      ...{ enumerable: true, configurable: true, writable: true },
    });
  }
};

/** State of an answer as its event stores it: JSON text, which no rule of storage changes. */
interface State {
  /** Fields whose text is the thought of the answer. */
  readonly thoughtIn: readonly string[];
  readonly fields: Fields;
  /** Ids and further fields of the tool calls; null for one whose id every vendor accepts. */
  readonly calls: readonly ({ readonly id: string; readonly fields: Fields } | null)[];
}

const callStateOf = ({ id, extras }: RawToolCall & { readonly extras: Fields }): State['calls'][number] =>
  (id === '' || isPortableId(id)) && Object.keys(extras).length === 0 ? null : { id, fields: extras };

/** Collects the reasoning of an answer, as its server wants it back. */
export class ReasoningState {
  private readonly texts = new Map<string, string>();
  private readonly lists = new Map<string, Part[]>();

  /** Reads the reasoning of a part of an answer. Returns its text. */
  read(content: Fields): string {
    for (const name of LIST_FIELDS)
      for (const piece of listOf(content[name])) this.addPart(name, fieldsOf(piece));
    const texts = TEXT_FIELDS.map((name) => {
      const text = textOf(content[name]);
      if (typeof content[name] === 'string') this.texts.set(name, (this.texts.get(name) ?? '') + text);
      return text;
    });
    // Two names of one text among compatible servers; the parts repeat it.
    return texts.find((text) => text !== '') ?? textOfParts(listOf(content['reasoning_details']));
  }

  /**
   * Returns the state to send back with the results of the tool calls; null where there is nothing.
   *
   * @param thought text of the reasoning, as the event stores it
   */
  toState(thought: string, toolCalls: readonly (RawToolCall & { readonly extras: Fields })[]): string | null {
    if (toolCalls.length === 0) return null;
    const thoughtIn = [...this.texts].filter(([, text]) => text === thought).map(([name]) => name);
    const others = [...this.texts].filter(([name]) => !thoughtIn.includes(name));
    const lists = [...this.lists].filter(([, parts]) => parts.length > 0);
    // The parts hold the text of the shorter field, and more.
    const isDetailed = this.lists.has('reasoning_details');
    const state: State = {
      thoughtIn: isDetailed ? [] : thoughtIn,
      fields: Object.fromEntries([...(isDetailed ? [] : others), ...lists]),
      calls: toolCalls.map(callStateOf),
    };
    const isEmpty =
      state.thoughtIn.length === 0 &&
      Object.keys(state.fields).length === 0 &&
      state.calls.every((call) => !call);
    return isEmpty ? null : JSON.stringify({ openai: state });
  }

  private addPart(name: string, piece: Fields | undefined): void {
    if (piece === undefined) return;
    const parts = this.lists.get(name) ?? [];
    this.lists.set(name, parts);
    const last = parts.at(-1);
    if (last !== undefined && continues(last, piece)) return extend(last, piece);
    const part: Part = {};
    extend(part, piece);
    parts.push(part);
  }
}

const textOfParts = (parts: readonly unknown[]): string =>
  parts
    .map(fieldsOf)
    .map((part) => textOf(part?.['text']) || textOf(part?.['summary']))
    .join('');

/** Fields to send back with a message, and the ids and fields of its calls. */
export interface ReturnedReasoning {
  readonly fields: Fields;
  readonly calls: readonly ({ readonly id: string; readonly fields: Fields } | null)[];
}

const NOTHING: ReturnedReasoning = { fields: {}, calls: [] };

/** Reads the state of a message. Empty for a message without one, or with one of another format. */
export const returnedReasoning = ({ providerState, thought = '' }: AssistantMessage): ReturnedReasoning => {
  const state = fieldsOf(fieldsOf(parseJson(providerState ?? ''))?.['openai']) as State | undefined;
  if (state === undefined) return NOTHING;
  const texts = state.thoughtIn.map((name) => [name, thought] as const);
  return { fields: { ...Object.fromEntries(texts), ...state.fields }, calls: state.calls };
};
