import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { HTTP_ROUTES, SOCKET_METHODS } from '@antiphon/contracts/reference';

const ROOT = resolve(import.meta.dirname, '../..');
const read = (file: string): string => readFileSync(join(ROOT, file), 'utf8');

const contract = read('docs/contract.md');

/** Returns the text below a heading of the contract. */
const sectionOf = (heading: string): string => {
  const [, rest = ''] = contract.split(`\n## ${heading}`);
  return rest.split('\n## ')[0] ?? '';
};

/** Returns the code in the first cell of each row. */
const firstCells = (section: string): string[][] =>
  section
    .split('\n')
    .filter((line) => line.startsWith('| `'))
    .map((line) => [...(line.split('|')[1] ?? '').matchAll(/`([^`]+)`/g)].map(([, code = '']) => code));

/** Returns all paths of a row: the first one is whole, and others follow any beginning of it. */
const pathsOf = ([first = '', ...others]: readonly string[]): string[] => {
  const segments = first.split('/');
  const beginnings = segments.map((_, index) => segments.slice(0, index + 1).join('/'));
  return [first, ...others.flatMap((path) => [path, ...beginnings.map((begin) => `${begin}${path}`)])];
};

/** Scripts that the page `/docs` loads. */
const PARTS = ['/docs/reference.js', '/docs/scalar.js'];

describe('docs/contract.md', () => {
  it('has a row for every method of the WebSocket', () => {
    const named = firstCells(sectionOf('3. ')).flat();
    expect(SOCKET_METHODS.map(({ name }) => name).filter((name) => !named.includes(name))).toEqual([]);
  });

  it('has a row for every route', () => {
    const named = new Set(firstCells(sectionOf('4. ')).flatMap(pathsOf));
    const paths = HTTP_ROUTES.map(({ path }) => path.replaceAll(/\{(\w+)\}/g, ':$1'));
    expect([...new Set(paths)].filter((path) => !named.has(path) && !PARTS.includes(path))).toEqual([]);
  });

  it('names every key and table of the reference of settings', () => {
    const section = sectionOf('2. ');
    const settings = read('examples/antiphon.toml');
    const keys = [...settings.matchAll(/^#?([a-z][a-z_]*) = /gm)].map(([, key = '']) => key);
    const tables = [...settings.matchAll(/^#?(\[\[?[a-z._]+\]\]?)$/gm)].map(([, table = '']) => table);
    expect(keys.length).toBeGreaterThan(80);
    const words = new Set(section.match(/[a-z_0-9]+/g));
    expect(keys.filter((key) => !words.has(key))).toEqual([]);
    expect(tables.filter((table) => !section.includes(`\`${table}\``))).toEqual([]);
  });
});
