const LINE_FEED = 10;

/** Lines of a text from one number on, and the number of all lines. */
export interface ReadLines {
  readonly lines: readonly string[];
  readonly total: number;
}

/**
 * Reads lines of a text without making a string of each other line: 8 MiB can be 8 million lines. A
 * line feed at the end begins no further line.
 */
export const readLines = (bytes: Uint8Array, from: number, count: number): ReadLines => {
  let total = 0;
  let start = -1;
  let end = bytes.length;
  for (let at = 0; at < bytes.length;) {
    total++;
    if (total === from) start = at;
    while (at < bytes.length && bytes[at] !== LINE_FEED) at++;
    if (total === from + count - 1) end = at;
    at++;
  }
  if (start === -1) return { lines: [], total };
  const text = new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes.subarray(start, end));
  const lines = text.split('\n');
  if (end === bytes.length && lines.at(-1) === '' && bytes.at(-1) === LINE_FEED) lines.pop();
  return { lines, total };
};
