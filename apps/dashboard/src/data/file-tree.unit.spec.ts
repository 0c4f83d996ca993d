import { describe, expect, it } from '@jest/globals';
import { findByPrefix, foldersAbove, rowsOfMatches, rowsOfTree, type FileEntry } from './file-tree.js';

const entry = (path: string, kind: FileEntry['kind'] = 'file'): FileEntry => ({
  ...{ path, kind, size: 1, digest: null, mode: 0o644, version: 1, is_virtual: false },
  ...{ changedAt: null, changedBy: null },
});
const parts = new Map([
  ['', { entries: [entry('src', 'folder'), entry('readme.md')], total: 5 }],
  ['src', { entries: [entry('src/a.ts'), entry('src/b.ts')], total: 2 }],
]);
const texts = (open: readonly string[]) =>
  rowsOfTree(parts, new Set(open)).map((row) =>
    row.kind === 'entry' ? `${row.level} ${row.entry.path} ${row.place}/${row.count}` : `more ${row.left}`,
  );

describe('the rows of a tree of files', () => {
  it('have the entries of open folders below them, and say how many are not read', () => {
    expect(texts([])).toEqual(['1 src 1/5', '1 readme.md 2/5', 'more 3']);
    expect(texts(['src'])).toEqual([
      ...['1 src 1/5', '2 src/a.ts 1/2', '2 src/b.ts 2/2', '1 readme.md 2/5', 'more 3'],
    ]);
  });

  it('leave an open folder empty until it is read', () => {
    expect(
      rowsOfTree(new Map([['', { entries: [entry('x', 'folder')], total: 1 }]]), new Set(['x'])),
    ).toHaveLength(1);
  });

  it('of a search are the entries whose path has the text, each once', () => {
    const found = rowsOfMatches([entry('a/Tide.md'), entry('a/Tide.md'), entry('b.md')], 'tide');
    expect(found).toEqual([expect.objectContaining({ entry: entry('a/Tide.md'), place: 1, count: 1 })]);
  });

  it('are found by the first letters of a name, after the current one and from the top', () => {
    const rows = rowsOfTree(parts, new Set(['src']));
    expect(findByPrefix(rows, 1, 'b')).toBe(2);
    expect(findByPrefix(rows, 3, 's')).toBe(0);
    expect(findByPrefix(rows, 0, 'zzz')).toBe(-1);
    expect(foldersAbove('a/b/c.md')).toEqual(['a', 'a/b']);
  });
});
