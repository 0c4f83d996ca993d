const DECODER = new TextDecoder('utf-8', { ignoreBOM: true });
const MAX_LINES = 40;
const MAX_CHARS = 300;

const shorten = (sign: string, lines: readonly string[]): string[] => {
  const shown = lines.slice(0, MAX_LINES).map((line) => `${sign}${line.slice(0, MAX_CHARS)}`);
  return lines.length > MAX_LINES ? [...shown, `${sign}… ${lines.length - MAX_LINES} more lines`] : shown;
};

/** Describes what differs between two versions of a text: the lines from the first to the last. */
export const describeChange = (before: Uint8Array, after: Uint8Array): string => {
  const old = DECODER.decode(before).split('\n');
  const now = DECODER.decode(after).split('\n');
  const most = Math.min(old.length, now.length);
  let same = 0;
  while (same < most && old[same] === now[same]) same++;
  let end = 0;
  while (end < most - same && old[old.length - 1 - end] === now[now.length - 1 - end]) end++;
  const removed = old.slice(same, old.length - end);
  const added = now.slice(same, now.length - end);
  const head = `@@ -${same + 1},${removed.length} +${same + 1},${added.length} @@`;
  return [head, ...shorten('-', removed), ...shorten('+', added)].join('\n');
};
