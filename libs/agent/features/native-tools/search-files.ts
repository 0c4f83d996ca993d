import { RE2JS } from 're2js';
import { invalid, nextEventLoopRound } from '@antiphon/kernel';
import { isBinary } from '../files/describe-change.js';

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
  /** Lines whose end was not searched, because they are too long. */
  readonly cutLines: number;
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
/** Time after which a search lets other work of the process run, ms. */
const BUSY_MS = 20;
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
    throw invalid(
      'FILE.INVALID_PATTERN',
      `the expression is not RE2: ${error instanceof Error ? error.message : ''}`,
    );
  }
};

const DECODER = new TextDecoder();

/** One search: the lines that it found and its limits. */
class Search {
  readonly found: FoundLine[] = [];
  readonly counts = { searched: 0, binary: 0, cutLines: 0 };
  private readonly find: FindFrom;
  /** Most files have no match: bytes are compared faster than they are decoded. */
  private readonly needle: Buffer | null;
  private readonly until = performance.now() + MAX_MS;
  private pauseAt = performance.now() + BUSY_MS;

  constructor(private readonly query: SearchQuery) {
    const { query: text, regex, ignoreCase } = query;
    this.find = regex ? regexFinder(text, ignoreCase) : literalFinder(text, ignoreCase);
    this.needle = regex || ignoreCase ? null : Buffer.from(text);
  }

  /** Returns false if a limit ends the search. */
  async searchFile(file: SearchedFile): Promise<boolean> {
    if (isBinary(file.bytes)) {
      this.counts.binary++;
      return true;
    }
    this.counts.searched++;
    if (this.needle && !bufferOf(file.bytes).includes(this.needle)) return true;
    for (const slice of slicesOf(DECODER.decode(file.bytes))) {
      if (!this.searchSlice(file.path, slice)) return false;
      if (performance.now() > this.pauseAt) await this.pause();
    }
    return true;
  }

  private async pause(): Promise<void> {
    await nextEventLoopRound();
    this.pauseAt = performance.now() + BUSY_MS;
  }

  private searchSlice(path: string, slice: Slice): boolean {
    if (slice.isCut) this.counts.cutLines++;
    for (const line of linesOf(path, slice, this.find)) {
      if (this.found.length === this.query.limit) return false;
      this.found.push(line);
    }
    return performance.now() <= this.until;
  }
}

/** Finds lines in files, in the order of the files, within limits of time and lines. */
export const searchFiles = async (
  files: AsyncIterable<readonly SearchedFile[]>,
  query: SearchQuery,
): Promise<SearchResult> => {
  const search = new Search(query);
  const { found, counts } = search;
  for await (const batch of files) {
    for (const file of batch)
      if (!(await search.searchFile(file))) return { found, ...counts, isTruncated: true };
    await nextEventLoopRound();
  }
  return { found, ...counts, isTruncated: false };
};

const bufferOf = (bytes: Uint8Array): Buffer => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);

/** Lines of a file that are searched without a pause. */
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
