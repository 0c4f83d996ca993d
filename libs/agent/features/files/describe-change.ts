import { structuredPatch } from 'diff';
import { AppError, isAppError } from '@antiphon/kernel';

const DECODER = new TextDecoder('utf-8', { ignoreBOM: true });
/** Maximum numbers of lines of one difference, and of UTF-16 units of one line. */
const MAX_LINES = 200;
const MAX_CHARS = 300;
/** Bounds of the search for the shortest difference. Beyond them one block is replaced. */
const SEARCH = { maxEditLength: 2_000, timeout: 250 } as const;

/** Maximum size of a version whose change the refusal of a request shows, in bytes. */
const MAX_SHOWN_BYTES = 1_024 * 1_024;
/** Codes of bytes that no longer exist. */
const GONE: ReadonlySet<string> = new Set(['FILE.ERASED', 'FILE.NO_BYTES']);

type ReadBytes = (digest: string) => Promise<Uint8Array>;

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

/** Describes the change between two versions, or says that the bytes of one are gone. */
export const describeStale = async (read: ReadBytes, before: string, now: string): Promise<string> => {
  try {
    return describeChange(await read(before), await read(now));
  } catch (error) {
    if (!isAppError(error) || !GONE.has(error.code)) throw error;
    return '[the content of one of the versions was erased]';
  }
};

export interface StoredVersions {
  /** Returns the sizes of those of the digests that are stored. */
  sizes(digests: readonly string[]): Promise<ReadonlyMap<string, number>>;
  read: ReadBytes;
}

/** Returns the difference of two texts; null for other bytes, large ones and those that are gone. */
const diffOf = async (versions: StoredVersions, before: string, now: string): Promise<string | null> => {
  try {
    const sizes = await versions.sizes([before, now]);
    const isShown = [before, now].every((digest) => (sizes.get(digest) ?? Infinity) <= MAX_SHOWN_BYTES);
    if (!isShown) return null;
    const [old, last] = [await versions.read(before), await versions.read(now)];
    return isBinary(old) || isBinary(last) ? null : describeChange(old, last);
  } catch {
    // The refusal stands, also where the difference cannot be read.
    return null;
  }
};

/** Runs the change of a request. `FILE.STALE` gets the difference of a text as `diff` in its data. */
export const explainStale = async <T>(versions: StoredVersions, change: () => T | Promise<T>): Promise<T> => {
  try {
    return await change();
  } catch (error) {
    if (!isAppError(error) || error.code !== 'FILE.STALE') throw error;
    const { expected, digest } = error.data;
    if (typeof expected !== 'string' || typeof digest !== 'string') throw error;
    const diff = await diffOf(versions, expected, digest);
    if (diff === null) throw error;
    const { kind, code, message } = error;
    throw new AppError(kind, code, message, { cause: error, data: { ...error.data, diff } });
  }
};
