import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { IgnoreRules, MAX_RULES, parseIgnoreFile } from './ignore-rules.js';

const rules = (files: Readonly<Record<string, string>>): IgnoreRules =>
  new IgnoreRules(new Map(Object.entries(files).map(([folder, text]) => [folder, parseIgnoreFile(text)])));

const CASES: readonly (readonly [string, readonly string[], readonly string[]])[] = [
  ['*.log', ['a.log', 'b/c.log'], ['a.log.txt', 'log']],
  ['/only', ['only', 'only/x'], ['a/only']],
  ['build/', ['build/a', 'a/build/b'], ['build']],
  ['a/b', ['a/b', 'a/b/c'], ['x/a/b']],
  ['**/deep', ['deep', 'a/b/deep/x'], ['deeper']],
  ['a/**/z', ['a/z', 'a/b/c/z'], ['a/zz', 'b/z']],
  ['docs/**', ['docs/a', 'docs/a/b'], ['docs', 'x/docs/a']],
  ['*.txt\n!keep.txt', ['a.txt'], ['keep.txt', 'b/keep.txt']],
  ['out/\n!out/keep', ['out/keep', 'out/x'], ['keep']],
  ['# a comment\n\\#real', ['#real'], ['a comment']],
  ['\\!real', ['!real'], ['real']],
  ['trail   \nkept\\ ', ['trail', 'kept '], ['kept']],
  ['f?o[0-9a]', ['foo1', 'fxoa'], ['fo1', 'foox']],
  ['[!a]b\n[]x]y', ['cb', ']y', 'xy'], ['ab']],
  ['a\r\nb\r', ['a', 'b'], ['c']],
  ['[open', [], ['[open', 'open']],
];

describe('The rules of a .gitignore', () => {
  it.each(CASES)('%j', (text, ignored, kept) => {
    const own = rules({ '': text });
    expect(ignored.filter((path) => !own.isIgnored(path))).toEqual([]);
    expect(kept.filter((path) => own.isIgnored(path))).toEqual([]);
  });

  it('of a nearer folder are stronger, and begin at their folder', () => {
    const own = rules({ '': '*.tmp\n/x', 'a/b': '!keep.tmp\n/x' });
    expect(
      ['k.tmp', 'a/keep.tmp', 'a/b/other.tmp', 'x', 'a/b/x'].filter((path) => !own.isIgnored(path)),
    ).toEqual([]);
    expect(
      ['a/b/keep.tmp', 'a/b/c/keep.tmp', 'a/x', 'a/b/c/x'].filter((path) => own.isIgnored(path)),
    ).toEqual([]);
  });

  it('do not hide the files of a folder that the caller names', () => {
    const own = rules({ '': 'build/\n*.log' });
    expect(own.isIgnored('build/a.txt')).toBe(true);
    expect(own.isIgnored('build/a.txt', 'build')).toBe(false);
    expect(own.isIgnored('build/a.log', 'build')).toBe(true);
  });

  // @shows chats-C12
  it('decide as `git check-ignore` does, for random rules and paths', () => {
    const cases = readFileSync(join(import.meta.dirname, 'fixtures/git-check-ignore.jsonl'), 'utf8')
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as { rules: string[]; ignored: string[]; kept: string[] });
    expect(cases.length).toBeGreaterThan(200);
    for (const { rules: lines, ignored, kept } of cases) {
      const own = rules({ '': lines.join('\n') });
      const wrong = [
        ...ignored.filter((path) => !own.isIgnored(path)),
        ...kept.filter((path) => own.isIgnored(path)),
      ];
      expect([lines, wrong]).toEqual([lines, []]);
    }
  });

  it(`of one file have an effect up to number ${MAX_RULES}; lines without a rule do not count`, () => {
    const lines = Array.from({ length: MAX_RULES + 1 }, (_, n) => `/file${n}\n# a comment\n`);
    const own = rules({ '': lines.join('\n') });
    expect(own.isIgnored('file0')).toBe(true);
    expect(own.isIgnored(`file${MAX_RULES - 1}`)).toBe(true);
    expect(own.isIgnored(`file${MAX_RULES}`)).toBe(false);
  });

  it('take bounded time for hostile patterns', () => {
    const stars = `${'*a'.repeat(60)}b`;
    const folders = `${'**/a/'.repeat(60)}b`;
    const own = rules({ '': `${stars}\n${folders}\n${'[a-'.repeat(500)}` });
    const started = performance.now();
    expect(own.isIgnored('a'.repeat(255))).toBe(false);
    expect(own.isIgnored('a/'.repeat(500) + 'c')).toBe(false);
    // A matcher that tries all ways takes years.
    expect(performance.now() - started).toBeLessThan(5_000);
  });
});
