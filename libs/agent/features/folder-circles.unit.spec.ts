import { describe, expect, it } from '@jest/globals';
import { readFileSync, readdirSync } from 'node:fs';
import { dirname, join, relative, resolve, sep } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = dirname(fileURLToPath(import.meta.url));
const FOLDERS = ['sessions', 'turns', 'approvals', 'runs', 'providers', 'maintenance'];
const IMPORT = /\b(?:from|import)\s*\(?\s*'(\.{1,2}\/[^']+)'/g;

type Imports = Readonly<Record<string, ReadonlySet<string>>>;

const folderOf = (path: string): string => relative(ROOT, path).split(sep)[0] ?? '';

/** Reads the production files of a folder, with its subfolders. */
const filesOf = (folder: string): string[] =>
  readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts') && !name.endsWith('.spec.ts') && !name.endsWith('.d.ts'))
    .map((name) => join(ROOT, folder, name));

/** Returns the folders that a folder's files import, types included. */
const importsOf = (folder: string): Set<string> => {
  const specifiers = filesOf(folder).flatMap((path) =>
    [...readFileSync(path, 'utf8').matchAll(IMPORT)].map(([, name]) => resolve(dirname(path), name ?? '')),
  );
  return new Set(specifiers.map(folderOf).filter((name) => name !== folder && FOLDERS.includes(name)));
};

/** Returns the first circle in a depth-first search; null if there is none. */
const findCircle = (imports: Imports, path: readonly string[] = []): readonly string[] | null => {
  const last = path.at(-1);
  for (const next of last === undefined ? Object.keys(imports) : (imports[last] ?? [])) {
    if (path.includes(next)) return [...path.slice(path.indexOf(next)), next];
    const found = findCircle(imports, [...path, next]);
    if (found) return found;
  }
  return null;
};

describe('the folders of agent/features', () => {
  const imports = Object.fromEntries(FOLDERS.map((folder) => [folder, importsOf(folder)]));

  it('import each other without a circle', () => expect(findCircle(imports)).toBeNull());

  it('leave sessions without imports of other folders', () =>
    expect([...(imports['sessions'] ?? [])]).toEqual([]));

  it('are reported with their circle', () =>
    expect(findCircle({ a: new Set(['b']), b: new Set(['c']), c: new Set(['b']) })).toEqual(['b', 'c', 'b']));
});
