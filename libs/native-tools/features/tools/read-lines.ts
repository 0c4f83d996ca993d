import type { ShownLines } from '../text-work.js';

const LINE_FEED = 10;
/** Maximum length of the shown text of a file, and of one line, UTF-16 units. */
const MAX_SHOWN = 100_000;
const MAX_LINE = 2_000;
/** Bytes of a line that hold more than `MAX_LINE` units: a unit takes three at most. */
const LINE_BYTES = 3 * (MAX_LINE + 1);
/** Units that the number of a line counts for. */
const NUMBER_LENGTH = 8;

/**
 * Numbers up to `count` lines of a text, up to a maximum length. Only what is shown becomes a
 * string: 8 MiB can be 8 million lines, or one. A line feed at the end begins no further line.
 */
export const numberLines = (bytes: Uint8Array, from: number, count: number): ShownLines => {
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  const lines: string[] = [];
  let isClipped = false;
  let length = 0;
  let total = 0;
  for (let at = 0; at < bytes.length; at++) {
    total++;
    const start = at;
    while (at < bytes.length && bytes[at] !== LINE_FEED) at++;
    if (total < from || lines.length < total - from || lines.length >= count) continue;
    const line = decoder.decode(bytes.subarray(start, Math.min(at, start + LINE_BYTES)));
    const clipped = line.length > MAX_LINE ? `${line.slice(0, MAX_LINE)}…` : line;
    length += clipped.length + NUMBER_LENGTH;
    // No later line is shown after one that was left out.
    if (length > MAX_SHOWN) continue;
    isClipped ||= clipped !== line;
    lines.push(`${total}\t${clipped}`);
  }
  return { text: lines.join('\n'), shown: lines.length, isClipped, total };
};
