import { isBinary } from '@antiphon/files-features';
import { toolJobs } from '../text-work.js';
import type { FoundLine, SearchBatch, SearchQuery } from '../text-work.js';
import type { SearchResult, SearchedFile } from './search-files.js';

/** Maximum time of a search, ms. It is looked at after each slice of a text. */
const MAX_MS = 5_000;
/** Further time after which a slice is ended with its thread, ms. */
const SLICE_MS = 2_500;

const toBatch = (texts: readonly SearchedFile[], query: SearchQuery, forMs: number): SearchBatch => {
  const bytes = new Uint8Array(texts.reduce((sum, file) => sum + file.bytes.length, 0));
  let from = 0;
  for (const file of texts) {
    bytes.set(file.bytes, from);
    from += file.bytes.length;
  }
  return { query, bytes, files: texts.map((file) => [file.path, file.bytes.length]), forMs };
};

/**
 * Finds lines in files, in the order of the files, within limits of time and lines. The lines are
 * searched in a thread, which a slow expression ends: `WORK.DEADLINE`.
 */
export const searchFiles = async (
  owner: string,
  files: AsyncIterable<readonly SearchedFile[]>,
  query: SearchQuery,
): Promise<SearchResult> => {
  const until = performance.now() + MAX_MS;
  const found: FoundLine[] = [];
  const counts = { searched: 0, binary: 0, cutLines: 0 };
  const search = async (texts: readonly SearchedFile[]): Promise<boolean> => {
    const forMs = Math.max(1, Math.ceil(until - performance.now()));
    const input = toBatch(texts, { ...query, limit: query.limit - found.length }, forMs);
    const transfer = [input.bytes.buffer as ArrayBuffer];
    const job = { name: 'searchBatch', input, owner, deadlineMs: forMs + SLICE_MS, transfer } as const;
    const result = await toolJobs.run(job);
    found.push(...result.found);
    counts.cutLines += result.cutLines;
    return result.isTruncated;
  };
  // An expression is also checked where no file is searched.
  if (query.regex) await search([]);
  for await (const batch of files) {
    const texts = batch.filter(({ bytes }) => !isBinary(bytes));
    counts.binary += batch.length - texts.length;
    counts.searched += texts.length;
    const filled = texts.filter(({ bytes }) => bytes.length > 0);
    if (filled.length > 0 && (await search(filled))) return { found, ...counts, isTruncated: true };
  }
  return { found, ...counts, isTruncated: false };
};
