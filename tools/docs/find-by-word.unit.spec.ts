import { globSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { describe, expect, it } from '@jest/globals';

const ROOT = join(import.meta.dirname, '../..');
/** Number of files that a reader of results looks at. */
const FIRST_PAGE = 20;

/** Usual changes, with the word that a newcomer searches for and a file that the change begins in. */
const CHANGES: readonly (readonly [change: string, word: RegExp, file: RegExp])[] = [
  ['backoff of providers', /backoff/gi, /session\/retry-policy\.ts/],
  ['a kind of provider', /provider.?kind/gi, /config\/provider-kinds\.ts/],
  ['a REST route', /route/gi, /contracts\/reference\/\w+-routes\.ts/],
  ['a WebSocket method', /method/gi, /contracts\/reference\/socket-methods\.ts/],
  ['an event with a projection', /projection/gi, /\.projection\.ts/],
  ['a Temporal workflow', /workflow/gi, /agent\/workflows\/.*\.workflow\.ts/],
  ['the duration of a lease', /lease/gi, /sessions\/drive-times\.ts/],
  ['the threshold of a circuit breaker', /breaker/gi, /domain\/circuit-breaker\.ts/],
  ['a column of a projection', /projection/gi, /\.projection\.ts/],
  ['the bound of a call in tokens', /bound/gi, /transport\/request-format\.ts/],
  ['a price', /price/gi, /config\/prices\.ts/],
  ['the replay of dead letters', /dead.?letter/gi, /replay-dead-letters\.ts/],
  ['the time for an approval', /approval/gi, /config\/agent\.schema\.ts/],
  ['a page of the dashboard', /page/gi, /app\/pages\.ts/],
  ['a command of the command line', /command/gi, /cli\/src\/main\.ts/],
  ['a capability of plug-ins', /capability/gi, /config\/capability\.ts/],
  ['the rate limit of a key', /rate.?limit/gi, /access\/rate-limits\.ts/],
  ['redaction', /redact/gi, /observability\/redact/],
  ['a metric', /metric/gi, /observability\/metrics\.ts/],
  ['readiness', /readiness/gi, /health-registry\.ts/],
  ['the time for which an idempotency key is kept', /idempotency/gi, /config\/config\.schema\.ts/],
  ['the rules of file paths', /path/gi, /domain\/file-path\.ts/],
  ['a fork', /fork/gi, /fork-session\.handler\.ts/],
  ['a setting', /setting/gi, /config\/config\.schema\.ts/],
];

const FILES = globSync('{libs,apps}/**/*.{ts,tsx}', {
  cwd: ROOT,
  exclude: (path) =>
    /(^|\/)(node_modules|dist|testing|generated|gateway-e2e)$|\.(spec|d|simulation|examples)\.ts$/.test(path),
}).map((path) => ({ path, text: readFileSync(join(ROOT, path), 'utf8') }));

const TABLE = readFileSync(join(ROOT, 'docs/architecture.md'), 'utf8')
  .split('## Where to find it')[1]
  ?.split('\n')
  .filter((line) => line.startsWith('| ')) as string[];

/**
 * Returns the first page of results for a word. The files of the table of words come first, then
 * files with the word in their name, then the files that have it most often.
 */
const search = (word: RegExp): readonly string[] => {
  const named = (text: string): boolean => text.search(word) !== -1;
  const rows = TABLE.filter((row) => named(row.split('|')[1] ?? ''));
  const found = FILES.map(({ path, text }) => ({ path, hits: text.match(word)?.length ?? 0 }))
    .filter(({ path, hits }) => hits > 0 || named(basename(path)))
    .sort((a, b) => Number(named(basename(b.path))) - Number(named(basename(a.path))) || b.hits - a.hits);
  const told = rows.flatMap((row) => [...row.matchAll(/`([^`]+)`/g)].map(([, path]) => path ?? ''));
  return [...told, ...found.map(({ path }) => path)].slice(0, FIRST_PAGE);
};

describe('the first page of a search', () => {
  it.each(CHANGES)('has the file in which a change of %s begins', (_, word, file) =>
    expect(search(word).filter((path) => file.test(path))).not.toEqual([]),
  );
});
