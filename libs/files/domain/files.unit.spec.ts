import { describe, expect, it } from '@jest/globals';
import { decideFiles, requireFile } from './file-tree.decider.js';
import type { FileCommand, FileLimits } from './file-tree.decider.js';
import { emptyFileTree, foldFileTree, streamVersionOf } from './file-tree.js';
import type { FileTree } from './file-tree.js';
import { foldCase, normalizePath } from './file-path.js';

const LIMITS: FileLimits = { maxFileBytes: 1_000, maxFiles: 5, maxBytes: 2_000, maxVersions: 50 };
const cause = { actor: 'key/k1' };
const at = '2026-11-23T00:00:00.000Z';
const digest = (letter: string): string => letter.repeat(64);
const write = (path: string, letter = 'a', expect?: string | null): FileCommand => ({
  ...{ op: 'write', path, digest: digest(letter), size: 10, expect },
});

const apply = (tree: FileTree, ...commands: FileCommand[]): FileTree =>
  foldFileTree(tree, decideFiles(tree, commands, { at, cause, limits: LIMITS }));
const paths = (tree: FileTree): string[] => [...tree.files.keys()].sort();
const refused = (tree: FileTree, ...commands: FileCommand[]): string => {
  try {
    apply(tree, ...commands);
    return 'accepted';
  } catch (error) {
    return (error as { code: string }).code;
  }
};

describe('A path', () => {
  it.each([
    ['../../etc/passwd'],
    ['/etc/passwd'],
    ['..\\..\\windows\\win.ini'],
    ['~/.ssh/id_rsa'],
    ['a/.../b/. ./c'],
    ['a'.repeat(256)],
    ['a/'.repeat(600)],
    ['CON'],
    ['aux.txt'],
    ['a:b'],
    ['.'],
    ['a//b'],
    ['a/'],
    ['a/./b'],
    ['a\u0000b'],
    ['a\nb'],
    ['%2e%2e/x'],
    ['a%2Fb'],
    ['．．/x'],
    ['‥/x'],
    ['a／b'],
    ['a\u202eb'],
    ['a\ud800b'],
    [''],
    ['a '],
    ['a.'],
    ['\\\\server\\share'],
    ['C:/x'],
  ])('%j is refused', (path) => {
    expect(() => normalizePath(path)).toThrow(expect.objectContaining({ code: 'FILE.INVALID_PATH' }));
  });

  it.each([
    ['a.txt'],
    ['docs/Grüße 世界.md'],
    ['.gitignore'],
    ['a/b/c/d.tar.gz'],
    ['👩‍💻.md'],
    ['src/[id].tsx'],
  ])('%j is accepted', (path) => expect(normalizePath(path)).toBe(path.normalize('NFC')));

  it('is normalised to NFC, and folds case as file systems do', () => {
    expect(normalizePath('cafe\u0301')).toBe('caf\u00e9');
    expect(foldCase('Straße')).toBe(foldCase('STRASSE'));
  });
});

describe('A file tree', () => {
  const two = apply(emptyFileTree(), write('docs/a.md'), write('b.txt', 'b'));

  it('has each file with its digest and the version that changed it', () => {
    expect(paths(two)).toEqual(['b.txt', 'docs/a.md']);
    expect(two.files.get('b.txt')).toMatchObject({
      ...{ path: 'b.txt', digest: digest('b'), size: 10, mode: 0o644, version: 2 },
    });
  });

  it('changes nothing for bytes that the file has', () =>
    expect(apply(two, write('b.txt', 'b', digest('f')))).toEqual(two));

  it('refuses a change of a file that changed after it was read', () => {
    expect(refused(two, write('b.txt', 'c', digest('f')))).toBe('FILE.STALE');
    expect(refused(two, write('b.txt', 'c', null))).toBe('FILE.EXISTS');
    expect(refused(two, write('c.txt', 'c', digest('f')))).toBe('FILE.NOT_FOUND');
    expect(refused(two, write('b.txt', 'c', digest('b')))).toBe('accepted');
  });

  it('makes all changes of a command, or none', () => {
    expect(refused(two, write('c.txt'), write('b.txt', 'c', digest('f')))).toBe('FILE.STALE');
    expect(paths(two)).toEqual(['b.txt', 'docs/a.md']);
  });

  it.each([
    ['another case', 'B.TXT'],
    ['another case of a folder', 'Docs/c.md'],
    ['a file as a folder', 'b.txt/c'],
  ])('refuses a new path that clashes: %s', (_name, path) =>
    expect(refused(two, write(path))).toBe('FILE.PATH_CLASH'),
  );

  it('refuses to write a folder, and to write, move or delete a virtual file', () => {
    expect(refused(two, write('docs'))).toBe('FILE.IS_FOLDER');
    expect(refused(two, write('talk.chat'))).toBe('FILE.VIRTUAL');
    expect(refused(two, { op: 'move', path: 'b.txt', to: 'talk.CHAT' })).toBe('FILE.VIRTUAL');
    expect(refused(two, { op: 'move', path: 'talk.chat', to: 'talk.md' })).toBe('FILE.VIRTUAL');
    expect(refused(two, { op: 'delete', path: 'talk.chat' })).toBe('FILE.VIRTUAL');
    expect(refused(two, { op: 'delete', path: 'talk.chat', files: 1 })).toBe('FILE.VIRTUAL');
    expect(() => requireFile(two, 'talk.chat')).toThrow(expect.objectContaining({ code: 'FILE.VIRTUAL' }));
  });

  it('moves a file or a folder, and never over another file', () => {
    expect(paths(apply(two, { op: 'move', path: 'docs', to: 'old/docs' }))).toEqual([
      'b.txt',
      'old/docs/a.md',
    ]);
    expect(paths(apply(two, { op: 'move', path: 'b.txt', to: 'B.txt' }))).toEqual(['B.txt', 'docs/a.md']);
    expect(refused(two, { op: 'move', path: 'b.txt', to: 'docs/a.md' })).toBe('FILE.EXISTS');
    expect(refused(two, { op: 'move', path: 'docs', to: 'docs/x' })).toBe('FILE.IS_FOLDER');
  });

  it('keeps a deleted file in the bin, from which it comes back', () => {
    const deleted = apply(two, { op: 'delete', path: 'b.txt' });
    expect(paths(deleted)).toEqual(['docs/a.md']);
    const file = deleted.bin.get(3);
    expect(file?.digest).toBe(digest('b'));
    if (!file) return;
    const restored = apply(deleted, { op: 'restore', path: 'b.txt', from: 3, file });
    expect(restored.files.get('b.txt')?.digest).toBe(digest('b'));
    expect(restored.bin.size).toBe(0);
  });

  it('removes a folder only with the number of its files', () => {
    expect(refused(two, { op: 'delete', path: 'docs' })).toBe('FILE.IS_FOLDER');
    expect(refused(two, { op: 'delete', path: 'docs', files: 2 })).toBe('FILE.STALE');
    expect(paths(apply(two, { op: 'delete', path: 'docs', files: 1 }))).toEqual(['b.txt']);
  });

  it.each([
    ['bytes of a file', [{ ...write('x'), size: 1_001 } as FileCommand]],
    ['number of files', ['1', '2', '3', '4', '5', '6'].map((path) => write(path))],
    ['bytes of all versions', ['1', '2', '3'].map((path) => ({ ...write(path), size: 900 }) as FileCommand)],
  ])('refuses to go over the quota: %s', (_name, commands) =>
    expect(refused(emptyFileTree(), ...commands)).toBe('FILE.QUOTA'),
  );

  it('of a fork has the files of its base and continues its versions', () => {
    const forked = foldFileTree(two, [
      {
        type: 'FileTreeForked',
        schemaVersion: 1,
        data: { cause, at, base: '0192f0c1-7a2b-7c3d-8e4f-000000000001', version: two.version },
      },
    ]);
    expect([paths(forked), forked.version, streamVersionOf(forked)]).toEqual([paths(two), 3, 1]);
    const changed = apply(forked, write('b.txt', 'c', digest('b')));
    expect(changed.files.get('b.txt')?.version).toBe(4);
    expect(two.files.get('b.txt')?.digest).toBe(digest('b'));
  });

  it('knows the versions of a call', () => {
    const called = { at, cause: { ...cause, callId: 'c1' }, limits: LIMITS };
    const tree = foldFileTree(two, decideFiles(two, [write('x'), write('y')], called));
    expect(tree.calls.get('c1')).toEqual({ from: 3, to: 4 });
  });
});

describe('The quota of versions', () => {
  const MOST = 4;
  const change = (tree: FileTree, ...commands: FileCommand[]): FileTree =>
    foldFileTree(tree, decideFiles(tree, commands, { at, cause, limits: { ...LIMITS, maxVersions: MOST } }));
  const quotaOf = (tree: FileTree, ...commands: FileCommand[]): unknown => {
    try {
      return change(tree, ...commands).version;
    } catch (error) {
      const { code, data } = error as { code: string; data: { quota: string; limit: number; value: number } };
      return [code, data.quota, data.value, data.limit];
    }
  };
  const over = (value: number) => ['FILE.QUOTA', 'max_versions', value, MOST];
  const three = change(emptyFileTree(), write('a', 'a'), write('a', 'b'), write('a', 'c'));

  // @shows chats-C15
  it('counts each change, also of one file and in the bin, and refuses all of a command that goes over', () => {
    expect(quotaOf(three, write('a', 'd'))).toBe(MOST);
    expect(quotaOf(three, write('a', 'd'), write('b'))).toEqual(over(5));
    const full = change(three, { op: 'delete', path: 'a' });
    expect(quotaOf(full, write('b'))).toEqual(over(5));
    const file = { digest: digest('c'), size: 10, mode: 0o644 } as const;
    expect(quotaOf(full, { op: 'restore', path: 'a', from: 4, file })).toEqual(over(5));
    // A change that changes nothing is no version.
    expect(quotaOf(change(three, write('b')), write('a', 'c'))).toBe(MOST);
  });

  it('is of each tree: a fork begins with the versions of its base, and does not use those of the base', () => {
    const base = '0192f0c1-7a2b-7c3d-8e4f-000000000001';
    const data = { cause, at, base, version: 2 };
    const two = change(emptyFileTree(), write('a', 'a'), write('a', 'b'));
    const forkOf = () => foldFileTree(two, [{ type: 'FileTreeForked', schemaVersion: 1, data }]);
    const [first, second] = [forkOf(), forkOf()];
    expect(quotaOf(change(first, write('a', 'c')), write('a', 'd'))).toEqual(over(5));
    expect(quotaOf(second, write('a', 'c'))).toBe(MOST);
    expect(quotaOf(two, write('a', 'c'), write('a', 'd'))).toBe(MOST);
  });
});

describe('The quotas of a workspace', () => {
  const named = (tree: FileTree, limits: FileLimits, ...commands: FileCommand[]): unknown[] =>
    decideFiles(tree, commands, { at, cause, limits }).map(({ data }) => 'quotas' in data && data.quotas);

  it('are in the first change, and again in the first one after they changed', () => {
    expect(named(emptyFileTree(), LIMITS, write('a'), write('b'))).toEqual([LIMITS, false]);
    const tree = apply(emptyFileTree(), write('a'));
    expect(tree.quotas).toEqual(LIMITS);
    expect(named(tree, LIMITS, write('b'))).toEqual([false]);
    const more = { ...LIMITS, maxFiles: 6 };
    expect(named(tree, more, write('b'))).toEqual([more]);
    expect(named(tree, more, write('a'))).toEqual([]);
  });
});
