import { findJsonExcess } from '@antiphon/kernel';
import type { ResponseHeaders } from './error-text.js';
import { brokenAnswer } from './failures.js';

/** Maximum nesting of a response: a tool's input (64) within the vendor's envelope. */
const MAX_RESPONSE_DEPTH = 80;

/** Maximum length of a response in one piece, UTF-16 units. */
const MAX_WHOLE = 2 * 1024 * 1024;

/** Returns true for the first bytes of an event stream: a comment or a field. */
export const beginsEvents = (chunk: Buffer): boolean =>
  /^(?:\u00ef\u00bb\u00bf)?(?:data|event|id|retry)?:/.test(chunk.subarray(0, 16).toString('latin1'));

export const mediaTypeOf = (headers: ResponseHeaders): string =>
  String(headers['content-type'] ?? '')
    .split(';')[0]
    ?.trim()
    .toLowerCase() ?? '';

export const isJson = (type: string): boolean => type === 'application/json' || type.endsWith('+json');

/** Parses a response in one piece. Throws a protocol failure for one that is too large or deep. */
export const parseResponse = (text: string): unknown => {
  if (text.length > MAX_WHOLE)
    throw brokenAnswer('too_many_characters', { detail: MAX_WHOLE, retryable: false });
  if (findJsonExcess(text, { depth: MAX_RESPONSE_DEPTH }) !== null) throw brokenAnswer('too_complex');
  return JSON.parse(text) as unknown;
};

/** Parses an answer that is not streamed; undefined for text that is not JSON. */
export const parseWhole = (text: string): unknown => {
  try {
    return parseResponse(text);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
};

type Fields = Readonly<Record<string, unknown>>;

/** Returns the first value of a list: Gemini's servers put responses and errors into one. */
const firstOf = (json: unknown): Fields => ((Array.isArray(json) ? json[0] : json) ?? {}) as Fields;

export const hasError = (json: unknown): boolean => Boolean(firstOf(json)['error']);

/** Returns true for an answer in the format of any vendor. */
export const isAnswer = (json: unknown): boolean => {
  const { choices, content, candidates, promptFeedback, output } = firstOf(json);
  const isList = [choices, content, candidates].some((value) => Array.isArray(value));
  return !hasError(json) && (isList || promptFeedback !== undefined || output !== undefined);
};
