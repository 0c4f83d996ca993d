import { clipAt } from './clip-text.js';

/** Size of characters below U+0020 in JSON: a letter after a backslash, or a code. */
const SHORT_ESCAPES = new Set([0x08, 0x09, 0x0a, 0x0c, 0x0d]);

/** Returns the size of one code point in a JSON text, bytes. A lone surrogate is an escape. */
const codePointBytes = (code: number): number => {
  if (code < 0x20) return SHORT_ESCAPES.has(code) ? 2 : 6;
  if (code < 0x80) return code === 0x22 || code === 0x5c ? 2 : 1;
  if (code < 0x800) return 2;
  if (code >= 0xd800 && code <= 0xdfff) return 6;
  return code < 0x10000 ? 3 : 4;
};

/** Returns the size of a text in JSON without its quotes, bytes. */
export const jsonBytes = (text: string): number => Buffer.byteLength(JSON.stringify(text)) - 2;

/** Returns true for a text that takes over `max` bytes in UTF-8 or in JSON. */
export const exceedsJsonBytes = (text: string, max: number): boolean =>
  Buffer.byteLength(text) > max ||
  // A control character takes six bytes in JSON.
  (text.length > max / 6 && jsonBytes(text) > max);

/** Returns the length of the longest part from the start that takes `max` bytes of JSON at most. */
const fittingLength = (text: string, max: number): number => {
  let bytes = 0;
  for (let at = 0; at < text.length;) {
    const code = text.codePointAt(at) as number;
    bytes += codePointBytes(code);
    if (bytes > max) return at;
    at += code < 0x10000 ? 1 : 2;
  }
  return text.length;
};

/** Returns the longest start of a text that takes `max` bytes of JSON at most. */
export const cutToJsonBytes = (text: string, max: number): string => text.slice(0, fittingLength(text, max));

/**
 * Clips a text to `max` bytes of JSON and appends a note with its whole length, which takes some
 * bytes more. A size in characters is no limit: one may take six bytes.
 */
export const clipToJsonBytes = (text: string, max: number): string => {
  const length = fittingLength(text, max);
  return length === text.length ? text : clipAt(text, length);
};
