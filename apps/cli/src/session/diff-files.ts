import { structuredPatch } from 'diff';
import { isAppError } from '@antiphon/kernel';
import type { CommandContext } from '../output.js';
import { escapeText } from '../escape-text.js';
import { numberOf, readBytes, type BrowseOptions } from './browse-files.js';

/** Time to find the shortest difference, ms. Beyond it, all lines are replaced. */
const SEARCH_MS = 5_000;
const CONTEXT_LINES = 3;
const NO_LINE_END = '\\ No newline at end of file';

/** Returns the text of bytes; null for binary ones, which have a zero or are not UTF-8. */
const textOf = (bytes: Uint8Array): string | null => {
  if (bytes.subarray(0, 8_000).includes(0)) return null;
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return null;
  }
};

const linesOf = (sign: string, text: string): string[] => {
  if (text === '') return [];
  const lines = text.split('\n');
  const hasLineEnd = lines.at(-1) === '';
  if (hasLineEnd) lines.pop();
  return [...lines.map((line) => `${sign}${line}`), ...(hasLineEnd ? [] : [NO_LINE_END])];
};

/** Returns a hunk that replaces all lines. */
const replaceAll = (before: string, after: string) => {
  const [removed, added] = [linesOf('-', before), linesOf('+', after)];
  const count = (lines: string[]): number => lines.filter((line) => line !== NO_LINE_END).length;
  const [oldLines, newLines] = [count(removed), count(added)];
  return { oldStart: 1, newStart: 1, oldLines, newLines, lines: [...removed, ...added] };
};

/** The start of an empty range is the line before it. */
const rangeOf = (start: number, lines: number): string => `${lines === 0 ? start - 1 : start},${lines}`;

/** Returns a unified diff of two versions of a file, which `patch` applies; empty for equal ones. */
export const unifiedDiff = (
  path: string,
  before: Uint8Array | null,
  after: Uint8Array | null,
  timeout = SEARCH_MS,
): string => {
  const [old, now] = [before ?? new Uint8Array(), after ?? new Uint8Array()];
  const [oldName, newName] = [before ? `a/${path}` : '/dev/null', after ? `b/${path}` : '/dev/null'];
  const [oldText, newText] = [textOf(old), textOf(now)];
  if ((before === null) === (after === null) && Buffer.compare(old, now) === 0) return '';
  if (oldText === null || newText === null)
    return `Binary files ${oldName} (${old.length} bytes) and ${newName} (${now.length} bytes) differ\n`;
  const options = { context: CONTEXT_LINES, timeout };
  const patch = structuredPatch('', '', oldText, newText, undefined, undefined, options);
  const hunks = patch ? patch.hunks : [replaceAll(oldText, newText)];
  const lines = hunks.flatMap((hunk) => {
    const head = `@@ -${rangeOf(hunk.oldStart, hunk.oldLines)} +${rangeOf(hunk.newStart, hunk.newLines)} @@`;
    return [head, ...hunk.lines];
  });
  // A tab ends a name with a space, as `patch` expects.
  const end = path.includes(' ') ? '\t' : '';
  return `${[`--- ${oldName}${end}`, `+++ ${newName}${end}`, ...lines].join('\n')}\n`;
};

/** Prints what changed in a file between two versions of the tree, as a unified diff. */
export const showDiff = async (
  context: CommandContext,
  path: string,
  options: BrowseOptions,
): Promise<void> => {
  const from = numberOf('from', options.from);
  const to = numberOf('to', options.to);
  const read = (at: string | undefined) => readBytes(context, path, options, at);
  // A file that one of the versions lacks was created or deleted.
  const nullIfMissing = (error: unknown): null => {
    if (isAppError(error) && error.code === 'FILE.NOT_FOUND') return null;
    throw error;
  };
  const [before, after] = [await read(from).catch(nullIfMissing), await read(to).catch(nullIfMissing)];
  if (!before && !after) await read(to);
  const diff = unifiedDiff(path, before, after);
  const { output } = context;
  const names = { path, from: Number(from), to: to === undefined ? null : Number(to) };
  if (output.json) output.result({ ...names, diff }, '');
  else if (diff === '') output.note('no difference');
  else if (process.stdout.isTTY) output.piece(diff.split('\n').map(escapeText).join('\n'));
  // A file or a pipe gets a diff that `patch` applies.
  else process.stdout.write(diff);
};
