import { structuredPatch } from 'diff';

const DECODER = new TextDecoder('utf-8', { ignoreBOM: true });
/** Maximum numbers of lines of one difference, and of UTF-16 units of one line. */
const MAX_LINES = 200;
const MAX_CHARS = 300;
/** Bounds of the search for the shortest difference. Beyond them one block is replaced. */
const SEARCH = { maxEditLength: 2_000, timeout: 250 } as const;

/** True for bytes that are no text: a zero within the first 8,000. */
export const isBinary = (bytes: Uint8Array): boolean => bytes.subarray(0, 8_000).includes(0);

const clip = (line: string): string => (line.length > MAX_CHARS ? `${line.slice(0, MAX_CHARS)}…` : line);

/** Returns the lines from the first to the last that differ, as one block. */
const oneBlock = (before: string, after: string): string[] => {
  const old = before.split('\n');
  const now = after.split('\n');
  const most = Math.min(old.length, now.length);
  let same = 0;
  while (same < most && old[same] === now[same]) same++;
  let end = 0;
  while (end < most - same && old[old.length - 1 - end] === now[now.length - 1 - end]) end++;
  const removed = old.slice(same, old.length - end);
  const added = now.slice(same, now.length - end);
  // Both sides are shown in part if they do not fit.
  const half = MAX_LINES / 2;
  const part = (sign: string, lines: readonly string[]): string[] => [
    ...lines.slice(0, half).map((line) => `${sign}${line}`),
    ...(lines.length > half ? [`${sign}… ${lines.length - half} more lines`] : []),
  ];
  const head = `@@ -${same + 1},${removed.length} +${same + 1},${added.length} @@`;
  return [head, ...part('-', removed), ...part('+', added)];
};

/** The start of an empty range is the line before it. */
const startOf = (start: number, lines: number): number => (lines === 0 ? start - 1 : start);

const blocksOf = (before: string, after: string): string[] => {
  const patch = structuredPatch('a', 'b', before, after, undefined, undefined, { context: 3, ...SEARCH });
  if (!patch) return oneBlock(before, after);
  return patch.hunks.flatMap(({ oldStart, oldLines, newStart, newLines, lines }) => [
    `@@ -${startOf(oldStart, oldLines)},${oldLines} +${startOf(newStart, newLines)},${newLines} @@`,
    ...lines,
  ]);
};

/** Describes what differs between two versions of a text: a unified diff within bounds. */
export const describeChange = (before: Uint8Array, after: Uint8Array): string => {
  if (isBinary(before) || isBinary(after)) return `binary: ${before.length} bytes → ${after.length} bytes`;
  const lines = blocksOf(DECODER.decode(before), DECODER.decode(after));
  const shown = lines.slice(0, MAX_LINES + 1).map(clip);
  return [
    ...shown,
    ...(lines.length > shown.length ? [`… ${lines.length - shown.length} more lines`] : []),
  ].join('\n');
};
