import type { AssistantMessage } from '@antiphon/providers-domain';
import { fieldsOf } from '../transport/answer-builder.js';
import type { Fields } from '../transport/answer-builder.js';
import { parseJson } from '../transport/error-text.js';

/** A content block of an answer. */
export interface AnswerPart {
  readonly type: string;
  /** Fields of the block's start. */
  readonly content: Fields;
  /** Text or thinking of the block, as the vendor sent it. */
  text: string;
  signature: string;
}

/** Joins a signature with a delta, which may repeat what was sent before. */
export const joinSignature = (signature: string, delta: string): string =>
  delta.startsWith(signature) ? delta : signature + delta;

/**
 * A block as the event of its answer stores it. Texts are lengths, because the event has them: of
 * its text for `text`, of its thought for `thinking`. Every other block is kept as it is.
 */
type StoredPart =
  | { readonly text: number }
  | { readonly tool: true }
  | { readonly thinking: number; readonly block: Fields }
  | { readonly block: Fields };

/** Blocks that the vendor wants back unchanged. */
const KEPT = new Set(['thinking', 'redacted_thinking']);

/** Returns a block of thinking as the vendor sends it whole, its fields in the vendor's order. */
const wholeThinking = ({ content, text, signature }: AnswerPart): Fields => ({
  ...content,
  thinking: text,
  ...(signature === '' && !('signature' in content) ? {} : { signature }),
});

const storePart = (part: AnswerPart, isThoughtExact: boolean): StoredPart[] => {
  switch (part.type) {
    case 'text':
      return [{ text: part.text.length }];
    case 'tool_use':
      return [{ tool: true }];
    case 'thinking': {
      const block = wholeThinking(part);
      return [isThoughtExact ? { thinking: part.text.length, block: { ...block, thinking: '' } } : { block }];
    }
    case 'redacted_thinking':
      return [{ block: part.content }];
    default:
      return [];
  }
};

/**
 * Returns the state to send back with the results of the tool calls: JSON text, which no rule of
 * storage changes. Null where the vendor wants nothing back.
 *
 * @param thought text of all thinking, as the event stores it
 */
export const stateOfParts = (parts: readonly AnswerPart[], thought: string): string | null => {
  const isKept = parts.some(({ type }) => KEPT.has(type)) && parts.some(({ type }) => type === 'tool_use');
  if (!isKept) return null;
  const thinking = parts.flatMap(({ type, text }) => (type === 'thinking' ? [text] : [])).join('');
  return JSON.stringify({ anthropic: parts.flatMap((part) => storePart(part, thinking === thought)) });
};

/** A content block to send back: a vendor's own one, a part of the text, or the next tool call. */
export type ReturnedPart =
  | { readonly kind: 'block'; readonly block: Fields }
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'tool' };

const sumOf = (parts: readonly StoredPart[], name: 'text' | 'thinking'): number =>
  parts.reduce((sum, part) => sum + (name in part ? (part as Record<typeof name, number>)[name] : 0), 0);

/**
 * Returns the blocks of a message in the vendor's order. Null for a message without a state, or
 * with one that does not belong to its texts.
 */
export const returnedParts = ({
  providerState,
  text,
  thought = '',
}: Pick<AssistantMessage, 'providerState' | 'text' | 'thought'>): readonly ReturnedPart[] | null => {
  const stored = fieldsOf(parseJson(providerState ?? ''))?.['anthropic'] as readonly StoredPart[] | undefined;
  if (!Array.isArray(stored)) return null;
  const hasLengths = stored.some((part) => 'thinking' in part);
  if (hasLengths && sumOf(stored, 'thinking') !== thought.length) return null;
  // A text that was cleaned or redacted has other lengths: all of it is where the first part was.
  const isTextExact = sumOf(stored, 'text') === text.length;
  let [textAt, thoughtAt] = [0, 0];
  return stored.map((part): ReturnedPart => {
    if ('tool' in part) return { kind: 'tool' };
    if ('text' in part) {
      const end = isTextExact ? textAt + part.text : text.length;
      const own = text.slice(textAt, end);
      textAt = end;
      return { kind: 'text', text: own };
    }
    if (!('thinking' in part)) return { kind: 'block', block: part.block };
    const thinking = thought.slice(thoughtAt, (thoughtAt += part.thinking));
    return { kind: 'block', block: { ...part.block, thinking } };
  });
};
