import { causedError } from '@antiphon/contracts/causes';
import { RE2JS } from 're2js';
import { invalid } from '@antiphon/kernel';
import type { BatchResult, FoundLine, SearchBatch, SearchQuery } from '../text-work.js';

export interface SearchResult {
  readonly found: readonly FoundLine[];
  /** Files that were searched, and those that were left out as binary. */
  readonly searched: number;
  readonly binary: number;
  /** Lines whose end was not searched, because they are too long. */
  readonly cutLines: number;
  /** True if a limit ended the search. */
  readonly isTruncated: boolean;
}

export interface SearchedFile {
  readonly path: string;
  readonly bytes: Uint8Array;
}

const MAX_LINE_CHARS = 500;
/** Minimum length of a slice, and maximum searched length of one line, UTF-16 units. */
const SLICE_CHARS = 256 * 1_024;
const MAX_SEARCHED_LINE = 4 * 1_024 * 1_024;

type FindFrom = (text: string, from: number) => number;

const literalFinder = (query: string, ignoreCase: boolean): FindFrom => {
  if (!ignoreCase) return (text, from) => text.indexOf(query, from);
  const folded = query.toLowerCase();
  let last = { text: '', folded: '' };
  return (text, from) => {
    if (last.text !== text) last = { text, folded: text.toLowerCase() };
    return last.folded.indexOf(folded, from);
  };
};

/** RE2 takes time linear in the text, for every expression. */
const regexFinder = (query: string, ignoreCase: boolean): FindFrom => {
  const flags = RE2JS.MULTILINE | (ignoreCase ? RE2JS.CASE_INSENSITIVE : 0);
  try {
    const pattern = RE2JS.compile(query, flags);
    return (text, from) => {
      const matcher = pattern.matcher(text);
      return matcher.find(from) ? matcher.start() : -1;
    };
  } catch (error) {
    const problem = error instanceof Error ? error.message : '';
    throw causedError(invalid, 'FILE.INVALID_PATTERN', { kind: 'search_not_re2', problem });
  }
};

const createFinder = ({ query, regex, ignoreCase }: SearchQuery): FindFrom =>
  regex ? regexFinder(query, ignoreCase) : literalFinder(query, ignoreCase);

/** Returns the slices of all texts of a batch. */
function* slicesOfBatch({ bytes, files }: SearchBatch): Generator<readonly [string, Slice]> {
  const decoder = new TextDecoder();
  let from = 0;
  for (const [path, length] of files) {
    const text = decoder.decode(bytes.subarray(from, (from += length)));
    for (const slice of slicesOf(text)) yield [path, slice];
  }
}

/** Searches the texts of one batch, in a thread. */
export const searchBatch = (batch: SearchBatch): BatchResult => {
  const until = performance.now() + batch.forMs;
  const find = createFinder(batch.query);
  const found: FoundLine[] = [];
  let cutLines = 0;
  for (const [path, slice] of slicesOfBatch(batch)) {
    if (slice.isCut) cutLines++;
    for (const line of linesOf(path, slice, find)) {
      if (found.length === batch.query.limit) return { found, cutLines, isTruncated: true };
      found.push(line);
    }
    if (performance.now() > until) return { found, cutLines, isTruncated: true };
  }
  return { found, cutLines, isTruncated: false };
};

/** Lines of a file that are searched at once. */
interface Slice {
  readonly text: string;
  /** Number of the first line. */
  readonly line: number;
  /** True if the last line is longer than a slice: its rest is not searched. */
  readonly isCut: boolean;
}

const countFeeds = (text: string): number => {
  let count = 0;
  for (let at = text.indexOf('\n'); at !== -1; at = text.indexOf('\n', at + 1)) count++;
  return count;
};

/** Returns a text in slices that end at line ends. */
function* slicesOf(text: string): Generator<Slice> {
  let line = 1;
  for (let at = 0; at < text.length || at === 0;) {
    const next = text.indexOf('\n', at + SLICE_CHARS);
    const end = next === -1 ? text.length : next + 1;
    const lastLine = text.lastIndexOf('\n', end - 2) + 1;
    const isCut = end - Math.max(at, lastLine) > MAX_SEARCHED_LINE;
    const slice = text.slice(at, isCut ? Math.max(at, lastLine) + MAX_SEARCHED_LINE : end);
    yield { text: slice, line, isCut };
    if (end === text.length) return;
    line += countFeeds(slice) + (isCut ? 1 : 0);
    at = end;
  }
}

/** Returns each line with a match once. */
function* linesOf(path: string, { text, line: first }: Slice, find: FindFrom): Generator<FoundLine> {
  let line = first;
  let counted = 0;
  for (let at = find(text, 0); at !== -1;) {
    for (
      let feed = text.indexOf('\n', counted);
      feed !== -1 && feed < at;
      feed = text.indexOf('\n', counted)
    ) {
      line++;
      counted = feed + 1;
    }
    const end = text.indexOf('\n', at);
    const whole = text.slice(counted, end === -1 ? undefined : end).replace(/\r$/, '');
    yield { path, line, text: whole.length > MAX_LINE_CHARS ? `${whole.slice(0, MAX_LINE_CHARS)}…` : whole };
    if (end === -1 || end + 1 >= text.length) return;
    at = find(text, end + 1);
  }
}
