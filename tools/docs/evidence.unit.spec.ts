import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { findGaps, withEvidence } from './render-evidence.mjs';
import { shownTests, testsIn } from './shown-tests.mjs';

const ROOT = resolve(import.meta.dirname, '../..');
const read = (file: string): string => readFileSync(join(ROOT, 'docs', file), 'utf8');

interface Table {
  readonly part: string;
  readonly columns: readonly string[];
  readonly shownBy: number;
  readonly rows: readonly {
    readonly id: string;
    readonly cells: readonly string[];
    readonly note?: string;
  }[];
}
const evidence = JSON.parse(read('evidence.json')) as Readonly<Record<string, readonly Table[]>>;
const shown = shownTests(ROOT);

describe('the rows of requirements and faults', () => {
  it.each(Object.entries(evidence))('are what `npm run generate:docs` writes into %s.md', (name, tables) => {
    const document = read(`${name}.md`);
    expect(document).toBe(withEvidence(document, tables, shown));
  });

  it('each have a test or a note, and each tag names a row', () => {
    expect(shown.size).toBeGreaterThan(80);
    expect(findGaps(Object.values(evidence).flat(), shown)).toEqual([]);
  });

  it('are found to have gaps without their tags, and with a tag of no row', () => {
    const tables = [{ part: 'x', columns: [], shownBy: 1, rows: [{ id: 'X1', cells: [] }] }];
    expect(findGaps(tables, new Map([['X2', []]]))).toEqual([
      '@shows X2 names no row',
      'X1 has no test and no note',
    ]);
  });
});

describe('the tag of a test', () => {
  // The tags are joined here, so that they are not tags of this file.
  const tag = (rows: string): string => `// @${'shows'} ${rows}\n`;

  it('names the rows of the test or the group below it', () => {
    const text = `${tag('C8 C9')}describe('a group', () => {
      it('is plain', run);
      ${tag('A1')}      it.each([['x']])('has %s', run);
    });`;
    expect(testsIn(text).map(({ title, rows }) => [title, rows])).toEqual([
      ['a group', ['C8', 'C9']],
      ['is plain', []],
      ['has %s', ['A1']],
    ]);
  });

  it('is refused without a test below it', () =>
    expect(() => testsIn(`${tag('A1')}const x = 1;`)).toThrow('line 1: no test follows @shows'));
});
