import { readFileSync } from 'node:fs';

interface CorpusLine {
  readonly id: string;
  readonly input: string | { readonly gen: string };
}

const LINES = readFileSync(new URL('../disk/fixtures/path-corpus.jsonl', import.meta.url), 'utf8')
  .split('\n')
  .filter((line) => line !== '')
  .map((line) => JSON.parse(line) as CorpusLine);

/** Hostile paths of the corpus. */
export const PATH_CASES = LINES.flatMap(({ id, input }) =>
  typeof input === 'string' ? [{ id, input }] : [],
);

/** Ids of the cases that need a file system: links, races and archives. */
export const DISK_CASES = LINES.flatMap(({ id, input }) => (typeof input === 'string' ? [] : [id]));
