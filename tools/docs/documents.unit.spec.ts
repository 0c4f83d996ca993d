import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { describe, expect, it } from '@jest/globals';

const ROOT = resolve(import.meta.dirname, '../..');
const ADR_WORDS = 500;
const read = (file: string): string => readFileSync(join(ROOT, file), 'utf8');
const git = (...args: string[]): string => execFileSync('git', args, { cwd: ROOT, encoding: 'utf8' });
const tracked = git('ls-files', '-co', '--exclude-standard')
  .split('\n')
  .filter((file) => file && existsSync(join(ROOT, file)));
const documents = tracked.filter((file) => file.endsWith('.md'));
const adrs = readdirSync(join(ROOT, 'docs/adr')).filter((file) => /^\d{4}-.*\.md$/.test(file));

const TOP_FOLDERS = 'apps|libs|tools|docs|prisma|deploy|k8s|plugins|examples|benchmarks';
const PATH = new RegExp(`(?<![\\w./-])(?:${TOP_FOLDERS})/[\\w./-]*[\\w-]`, 'g');
/** Products of a build, and examples of names that a user chooses. */
const NOT_STORED = /\/(dist|node_modules)(\/|$)|\.wasm$/;
const exists = (path: string): boolean =>
  existsSync(join(ROOT, path)) || adrs.some((file) => `docs/adr/${file}`.startsWith(`${path}-`));

/** Returns the repository paths that a text names, without line numbers. */
const pathsIn = (text: string): string[] => [...new Set(text.match(PATH) ?? [])];

const linksIn = (text: string): string[] =>
  [...text.matchAll(/\]\(([^)#\s]+)(?:#[^)]*)?\)/g)]
    .map(([, target]) => target ?? '')
    .filter((target) => !/^[a-z]+:|^<|^\//.test(target));

/** Returns the rows of the table below a heading, as arrays of cells. */
const tableBelow = (text: string, heading: string): string[][] => {
  const [, section = ''] = text.split(`${heading}\n`);
  const lines = section.split(/^## /m)[0]?.split('\n') ?? [];
  return lines
    .filter((line) => line.startsWith('|'))
    .slice(2)
    .map((line) =>
      line
        .split('|')
        .slice(1, -1)
        .map((cell) => cell.trim()),
    );
};

describe('the documents', () => {
  it.each(documents.filter((file) => file !== 'CHANGELOG.md'))('%s names only paths that exist', (file) => {
    const missing = pathsIn(read(file)).filter((path) => !NOT_STORED.test(path) && !exists(path));
    expect(missing).toEqual([]);
  });

  it.each(documents)('%s links only to files that exist', (file) => {
    const folder = dirname(join(ROOT, file));
    expect(linksIn(read(file)).filter((target) => !existsSync(resolve(folder, target)))).toEqual([]);
  });

  it('have a table that leads from the usual word to its code', () => {
    const rows = tableBelow(read('docs/architecture.md'), '## Where to find it');
    expect(rows.length).toBeGreaterThanOrEqual(24);
    for (const [word = '', files = ''] of rows) {
      const named = pathsIn(files);
      expect({ word, named: named.length > 0 }).toEqual({ word, named: true });
      for (const file of named) {
        const found = read(file).toLowerCase().includes(word.toLowerCase());
        expect({ word, file, found }).toEqual({ word, file, found: true });
      }
    }
  });

  it('refer to no document outside of the repository', () => {
    const texts = tracked.filter((file) => /\.(md|ts|mjs|cjs|toml|prisma|ya?ml)$/.test(file));
    const outside = /\bcontract §|house[- ]style §|\bthe seeds\b|\.\.\/shared\/[\w-]+\.md/i;
    const own = relative(ROOT, import.meta.filename);
    expect(texts.filter((file) => file !== own && outside.test(read(file)))).toEqual([]);
  });

  it('name a measured commit that exists', () => {
    const [, commit] = /commit `?([0-9a-f]{7,40})`?/i.exec(read('benchmarks/RESULTS.md')) ?? [];
    expect(commit).toBeDefined();
    const isShallow = git('rev-parse', '--is-shallow-repository').trim() === 'true';
    const exists = spawnSync('git', ['cat-file', '-e', `${commit}^{commit}`], { cwd: ROOT }).status === 0;
    expect(exists || isShallow).toBe(true);
  });
});

describe('a decision record', () => {
  it.each(adrs)('%s has its number, a date, a status and at most 500 words', (file) => {
    const text = read(`docs/adr/${file}`);
    expect(text).toMatch(new RegExp(`^# ${Number(file.slice(0, 4))}\\. \\S`));
    expect(text).toMatch(/^Date: \d{4}-\d{2}-\d{2}\. Status: (accepted|superseded by \[\d+\]\()/m);
    expect(text.split(/\s+/).filter((word) => /[\p{L}\p{N}]/u.test(word)).length).toBeLessThanOrEqual(
      ADR_WORDS,
    );
  });

  it('is listed in the index', () => {
    const index = read('docs/adr/README.md');
    expect(adrs.filter((file) => !index.includes(`(${file})`))).toEqual([]);
  });

  it('has a number that the code may cite', () => {
    const numbers = new Set(adrs.map((file) => Number(file.slice(0, 4))));
    const cited = tracked
      .filter(
        (file) => /\.(ts|mjs|cjs|md|sql|toml|ya?ml|prisma)$/.test(file) && !file.includes('migrations/'),
      )
      .flatMap((file) =>
        [...read(file).matchAll(/\bADRs? (\d+)/g)].map(([, number]) => `${file}: ${number}`),
      );
    expect(cited.filter((citation) => !numbers.has(Number(citation.split(': ')[1])))).toEqual([]);
  });
});
