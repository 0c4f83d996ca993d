import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { describe, expect, it } from '@jest/globals';

const ROOT = resolve(import.meta.dirname, '../..');
const tracked = execFileSync('git', ['ls-files', '-co', '--exclude-standard'], {
  cwd: ROOT,
  encoding: 'utf8',
})
  .split('\n')
  .filter((file) => file && existsSync(join(ROOT, file)));
/** Files of each name. Several folders may have a spec of one name. */
const specs = Map.groupBy(
  tracked.filter((file) => file.endsWith('.spec.ts')),
  (file) => basename(file, '.spec.ts'),
);
const documents = tracked.filter((file) => file.startsWith('docs/') && file.endsWith('.md'));
const read = (file: string): string => readFileSync(join(ROOT, file), 'utf8');

/** A spec by its path or its name, such as `relay.int.spec.ts` or `relay.int`. */
const SPEC = /(?<![\w-])(?:[\w.-]+\/)*([\w.-]+\.(?:unit|int|e2e|nightly|replay))(?:\.spec\.ts)?(?![\w-])/g;

const specsIn = (text: string): string[] => [...text.matchAll(SPEC)].map(([, name]) => name ?? '');

/** Adds a spec and the modules that it imports by a relative path, which may have its titles. */
const addSources = (file: string, sources: Map<string, string>): void => {
  if (file === '' || sources.has(file) || !existsSync(join(ROOT, file))) return;
  const text = read(file);
  sources.set(file, text);
  for (const [, path = ''] of text.matchAll(/(?:from|import) '(\.[^']+)\.js'/g))
    addSources(join(dirname(file), `${path}.ts`), sources);
};

/** Returns the titles that a cell quotes and none of its specs has. */
const unknownTitles = (cell: string): string[] => {
  const sources = new Map<string, string>();
  for (const file of specsIn(cell).flatMap((name) => specs.get(name) ?? [])) addSources(file, sources);
  if (sources.size === 0) return [];
  const text = [...sources.values()].join('\n');
  return [...cell.matchAll(/"([^"]+)"/g)]
    .flatMap(([, title = '']) => title.split('…').map((part) => part.trim()))
    .filter((part) => !text.includes(part));
};

describe('the documents', () => {
  it.each(documents)('%s names only specs that exist', (file) => {
    expect(specsIn(read(file)).filter((name) => !specs.has(name))).toEqual([]);
  });

  it('name specs', () => {
    expect(documents.flatMap((file) => specsIn(read(file))).length).toBeGreaterThan(400);
  });

  it.each(['docs/fault-tests.md', 'docs/requirements-map.md'])(
    '%s quotes only titles of its specs',
    (file) => {
      const cells = read(file)
        .split('\n')
        .flatMap((line) => line.split(/(?<!\\)\|/));
      expect(cells.flatMap(unknownTitles)).toEqual([]);
      expect(cells.filter((cell) => specsIn(cell).length > 0 && cell.includes('"')).length).toBeGreaterThan(
        10,
      );
    },
  );
});
