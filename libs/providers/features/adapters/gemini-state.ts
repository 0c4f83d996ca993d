import type { AssistantMessage } from '@antiphon/providers-domain';
import { fieldsOf } from '../transport/answer-builder.js';
import type { Fields } from '../transport/answer-builder.js';
import { parseJson } from '../transport/error-text.js';

/** Part of an answer. Pieces without a signature are joined, as they arrive. */
export interface AnswerPart {
  readonly kind: 'text' | 'thought' | 'call';
  text: string;
  /** Signature that the vendor wants back with this part; empty without one. */
  signature: string;
  /** The vendor's id of a call; empty without one. */
  readonly id: string;
}

/**
 * A part as the event of its answer stores it. A text is a length, because the event has the text.
 * A thought is kept if it is signed.
 */
type StoredPart =
  | { readonly text: number; readonly signature?: string }
  | { readonly thought: string; readonly signature: string }
  | { readonly call: string; readonly signature?: string };

const storePart = ({ kind, text, signature, id }: AnswerPart): StoredPart[] => {
  if (kind === 'thought') return signature === '' ? [] : [{ thought: text, signature }];
  const signed = signature === '' ? {} : { signature };
  return [kind === 'text' ? { text: text.length, ...signed } : { call: id, ...signed }];
};

/**
 * Returns the state to send back with the results of the tool calls: JSON text, which no rule of
 * storage changes. Null where the vendor wants nothing back.
 */
export const stateOfParts = (parts: readonly AnswerPart[]): string | null => {
  const isKept = parts.some(({ signature, id }) => signature !== '' || id !== '');
  if (!isKept || !parts.some(({ kind }) => kind === 'call')) return null;
  return JSON.stringify({ gemini: parts.flatMap(storePart) });
};

const signed = ({ signature }: { readonly signature?: string }): Fields =>
  signature === undefined ? {} : { thoughtSignature: signature };

/** A part to send back: the vendor's own one, or the next tool call with the vendor's fields. */
export type ReturnedPart =
  | { readonly kind: 'part'; readonly part: Fields }
  | { readonly kind: 'call'; readonly id: string; readonly fields: Fields };

/**
 * Returns the parts of a message in the vendor's order. Null for a message without a state, or with
 * one that does not belong to its calls.
 */
export const returnedParts = ({
  providerState,
  text,
  toolCalls,
}: AssistantMessage): readonly ReturnedPart[] | null => {
  const stored = fieldsOf(parseJson(providerState ?? ''))?.['gemini'] as readonly StoredPart[] | undefined;
  if (!Array.isArray(stored)) return null;
  if (stored.filter((part) => 'call' in part).length !== toolCalls.length) return null;
  const length = stored.reduce((sum, part) => sum + ('text' in part ? part.text : 0), 0);
  // A text that was cleaned or redacted has another length: all of it is where the first part was.
  const isTextExact = length === text.length;
  let at = 0;
  return stored.map((part): ReturnedPart => {
    if ('call' in part) return { kind: 'call', id: part.call, fields: signed(part) };
    if ('thought' in part)
      return { kind: 'part', part: { text: part.thought, thought: true, ...signed(part) } };
    const own = text.slice(at, (at = isTextExact ? at + part.text : text.length));
    return { kind: 'part', part: { text: own, ...signed(part) } };
  });
};
