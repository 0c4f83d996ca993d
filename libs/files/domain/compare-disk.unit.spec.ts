import { describe, expect, it } from '@jest/globals';
import { compareDisk, conflictPath } from './compare-disk.js';
import type { FileContent } from './compare-disk.js';
import { emptyFileTree } from './file-tree.js';
import type { FileEntry } from './file-tree.js';

const content = (digest: string): FileContent => ({ digest, size: 1, mode: 0o644 });
const entry = (path: string, digest: string): FileEntry => ({
  ...content(digest),
  ...{ path, version: 7, changedAt: '2026-11-27T10:00:00.000Z', changedBy: 'local' },
});

/** Compares one path: what was written last, what the tree has, and what the disk has. */
const compare = (written: string | null, tree: string | null, disk: string | null, unfinished?: string) =>
  compareDisk({
    tree: { ...emptyFileTree(), files: new Map(tree === null ? [] : [['f', entry('f', tree)]]) },
    disk: new Map(disk === null ? [] : [['f', content(disk)]]),
    refused: new Set(),
    written: () => [
      written === null ? null : content(written),
      ...(unfinished === undefined ? [] : [content(unfinished)]),
    ],
  }).map(({ kind }) => kind);

describe('a tree and its folder', () => {
  it.each([
    ['the tree changed the file', 'a', 'b', 'a', ['write']],
    ['the tree has a new file', null, 'b', null, ['write']],
    ['the tree deleted the file', 'a', null, 'a', ['remove']],
    ['nothing changed', 'a', 'a', 'a', []],
    ['both have the same new bytes', 'a', 'b', 'b', []],
    ['another program changed the file', 'a', 'a', 'c', ['outside']],
    ['another program created the file', null, null, 'c', ['outside']],
    ['another program removed the file', 'a', 'a', null, ['outside']],
    ['both changed the file', 'a', 'b', 'c', ['conflict']],
    ['both created the file', null, 'b', 'c', ['conflict']],
    ['the tree deleted a file that another program changed', 'a', null, 'c', ['outside']],
    ['the tree changed a file that another program removed', 'a', 'b', null, ['write']],
  ] as const)('differ when %s', (_, written, tree, disk, kinds) =>
    expect(compare(written, tree, disk)).toEqual(kinds),
  );

  it.each([
    ['has the unfinished version', 'a', 'c', 'b', 'b', ['write']],
    ['has the version before', 'a', 'c', 'a', 'b', ['write']],
    ['has a third version', 'a', 'b', 'x', 'b', ['conflict']],
  ] as const)(
    'continue after an interrupted round: the folder %s',
    (_, written, tree, disk, unfinished, kinds) =>
      expect(compare(written, tree, disk, unfinished)).toEqual(kinds),
  );

  it('leave a link and all below it as they are', () => {
    const tree = { ...emptyFileTree(), files: new Map([['d/f', entry('d/f', 'a')]]) };
    const refused = new Set(['d']);
    const disk = new Map<string, FileContent>();
    expect(compareDisk({ tree, disk, refused, written: () => [content('a')] })).toEqual([]);
    expect(compareDisk({ tree, disk, refused, written: () => [null] })).toEqual([
      { kind: 'blocked', path: 'd/f' },
    ]);
  });
});

describe('the name of a conflict', () => {
  it('keeps the ending and names the version', () =>
    expect(conflictPath('docs/plan.md', 12, () => false)).toBe('docs/plan (conflict 12).md'));

  it('is free', () => {
    const used = new Set(['a (conflict 1)', 'a (conflict 1-2)']);
    expect(conflictPath('a', 1, (path) => used.has(path))).toBe('a (conflict 1-3)');
  });

  it.each(['.env', 'archive.tar.gz', 'a.chat', `${'x'.repeat(250)}.txt`])(
    'is not longer than a name may be: %s',
    (path) => expect(conflictPath(path, 99_999, () => false).length).toBeLessThan(255),
  );
});
