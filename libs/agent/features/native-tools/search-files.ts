import { setImmediate as yieldToEvents } from 'node:timers/promises';
import { RE2JS } from 're2js';
import { invalid } from '@antiphon/kernel';

/** A line that a search found. */
export interface FoundLine {
  readonly path: string;
  readonly line: number;
  readonly text: string;
}

export interface SearchResult {
  readonly found: readonly FoundLine[];
  /** Files that were searched, and those that were left out as binary. */
  readonly searched: number;
  readonly binary: number;
  /** True if a limit ended the search. */
  readonly isTruncated: boolean;
}

export interface SearchQuery {
  readonly query: string;
  readonly regex: boolean;
  readonly ignoreCase: boolean;
  readonly limit: number;
}

export interface SearchedFile {
  readonly path: string;
  readonly bytes: Uint8Array;
}

/** Maximum time of a search, ms. */
const MAX_MS = 5_000;
const MAX_LINE_CHARS = 500;

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
    throw invalid(
      'FILE.INVALID_PATTERN',
      `the expression is not RE2: ${error instanceof Error ? error.message : ''}`,
    );
  }
};

/** True for bytes that are no text: a zero within the first 8,000. */
export const isBinary = (bytes: Uint8Array): boolean => bytes.subarray(0, 8_000).includes(0);

const DECODER = new TextDecoder();

/** Finds lines in files, in the order of the files, within limits of time and lines. */
export const searchFiles = async (
  files: AsyncIterable<readonly SearchedFile[]>,
  { query, regex, ignoreCase, limit }: SearchQuery,
): Promise<SearchResult> => {
  const find = regex ? regexFinder(query, ignoreCase) : literalFinder(query, ignoreCase);
  const until = performance.now() + MAX_MS;
  const found: FoundLine[] = [];
  let searched = 0;
  let binary = 0;
  const searchOne = ({ path, bytes }: SearchedFile): boolean => {
    if (isBinary(bytes)) binary++;
    else {
      searched++;
      for (const line of linesOf(path, DECODER.decode(bytes), find)) {
        if (found.length === limit) return false;
        found.push(line);
      }
    }
    return performance.now() <= until;
  };
  for await (const batch of files) {
    if (!batch.every(searchOne)) return { found, searched, binary, isTruncated: true };
    await yieldToEvents();
  }
  return { found, searched, binary, isTruncated: false };
};

/** Returns each line with a match once. */
function* linesOf(path: string, text: string, find: FindFrom): Generator<FoundLine> {
  let line = 1;
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
