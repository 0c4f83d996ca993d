import { describe, expect, it } from '@jest/globals';
import { decideFiles } from './file-tree.decider.js';
import type { FileCommand } from './file-tree.decider.js';
import { emptyFileTree, foldFileTree } from './file-tree.js';
import type { FileTree } from './file-tree.js';
import { programOfName, unsafePartOf } from './unsafe-names.js';

const limits = { maxFileBytes: 1_000, maxFiles: 1_000, maxBytes: 1_000_000, maxVersions: 1_000 };
const context = { at: '2026-01-01T00:00:00.000Z', cause: { actor: 'agent/main' }, limits };
const write = (path: string): FileCommand => ({ op: 'write', path, digest: 'd', size: 1 });
const after = (tree: FileTree, ...commands: FileCommand[]): FileTree =>
  foldFileTree(tree, decideFiles(tree, commands, context));
/** A tree as an older version may have left it. */
const older = (...paths: string[]): FileTree =>
  foldFileTree(
    emptyFileTree(),
    paths.map((path) => ({
      type: 'FileWritten',
      schemaVersion: 1,
      data: {
        ...{ at: context.at, cause: context.cause },
        path,
        digest: 'd',
        size: 1,
        mode: 0o644,
        before: null,
      },
    })),
  );
const refusal = (work: () => unknown): string | null => {
  try {
    work();
    return null;
  } catch (error) {
    return (error as { code: string }).code;
  }
};

describe('names that mean something to a program next to us', () => {
  it.each([
    ...['.git', '.GIT', '.Git', '.git ', '.git.', '.git . .', 'git~1', 'GIT~1', 'gi7eba~1', '.g\u200cit'],
    ...[
      '.\u200dgit',
      '.gi\u00adt',
      '．git',
      '.ｇｉｔ',
      '.g\u0131t',
      '.gitmodules',
      'gitmod~1',
      '.gitattributes',
    ],
    ...[
      '.envrc',
      '.direnv',
      '.bashrc',
      '.BASHRC',
      '.zshenv',
      '.profile',
      '.ssh',
      '.vscode',
      '.VSCode',
      '.idea',
    ],
    ...['.npmrc', '.yarnrc', '.yarnrc.yml', '.husky', '.githooks', '.devcontainer', '.devcontainer.json'],
    ...[
      '.pre-commit-config.yaml',
      '.mcp.json',
      '.claude',
      '.cursor',
      '.hg',
      '.svn',
      '.dir-locals.el',
      '.exrc',
    ],
    ...['x.code-workspace', 'desktop.ini', 'a.lnk', 'HE\u200cAD', '.cargo', '.pnp.cjs'],
  ])('are refused: %j', (name) => {
    expect(programOfName(name)).not.toBeNull();
    expect(unsafePartOf(`a/${name}/b`)?.part).toBe(name);
    expect(unsafePartOf(name)).not.toBeNull();
  });

  it.each([
    ...[
      '.gitignore',
      '.gitkeep',
      '.github',
      '.gitlab-ci.yml',
      'git',
      'git.md',
      'legit',
      '.env',
      '.editorconfig',
    ],
    ...['Makefile', 'package.json', 'HEAD', 'config', 'objects', 'refs', 'hooks', '.nvmrc', '.prettierrc'],
    ...[
      'profile',
      'bashrc.md',
      'a~1',
      '.eslintrc.json',
      'CLAUDE.md',
      'AGENTS.md',
      '.chat',
      'claude',
      'head.html',
    ],
  ])('are others than %j', (name) => expect(programOfName(name)).toBeNull());

  it.each<[string, () => unknown]>([
    ['a write', () => after(emptyFileTree(), write('.git/HEAD'))],
    ['a write below a folder', () => after(emptyFileTree(), write('a/b/.Git/config'))],
    ['a move', () => after(after(emptyFileTree(), write('a')), { op: 'move', path: 'a', to: '.envrc' })],
    [
      'a move of a folder',
      () => after(after(emptyFileTree(), write('a/HEAD')), { op: 'move', path: 'a', to: '.git' }),
    ],
    [
      'a restore',
      () =>
        after(emptyFileTree(), {
          ...{ op: 'restore', path: '.npmrc', from: 1 },
          file: { digest: 'd', size: 1, mode: 0o644 },
        }),
    ],
    [
      'a change of the copy on disk',
      () =>
        after(emptyFileTree(), {
          ...{ op: 'outside', path: '.vscode/tasks.json' },
          file: { digest: 'd', size: 1, mode: 0o644 },
        }),
    ],
  ])('are not created by %s', (_, change) => expect(refusal(change)).toBe('FILE.UNSAFE_NAME'));

  it('of an older log are read, deleted and moved away', () => {
    const tree = older('.git/HEAD', '.envrc');
    expect([...tree.files.keys()]).toEqual(['.git/HEAD', '.envrc']);
    const moved = after(tree, { op: 'move', path: '.envrc', to: 'envrc.txt' });
    const left = after(moved, { op: 'delete', path: '.git', files: 1 });
    expect([...left.files.keys()]).toEqual(['envrc.txt']);
  });
});

describe('a bare repository', () => {
  const parts = ['HEAD', 'objects/a', 'refs/heads/x'];
  const orders = [
    [0, 1, 2],
    [0, 2, 1],
    [1, 0, 2],
    [1, 2, 0],
    [2, 0, 1],
    [2, 1, 0],
  ];

  it.each(['', 'a/', 'a/b.git/'])('is refused at its last part, in each order, in %j', (folder) => {
    for (const order of orders) {
      const [first, second, last] = order.map((index) => write(`${folder}${parts[index]}`)) as [
        FileCommand,
        FileCommand,
        FileCommand,
      ];
      const tree = after(emptyFileTree(), first, second);
      expect(refusal(() => after(tree, last))).toBe('FILE.UNSAFE_NAME');
      expect(refusal(() => after(emptyFileTree(), first, second, last))).toBe('FILE.UNSAFE_NAME');
    }
  });

  it('is found in another case, by a moved folder, and by a reference to another folder', () => {
    const other = after(emptyFileTree(), write('x/head'), write('x/Objects/a'), write('y/a'));
    expect(refusal(() => after(other, { op: 'move', path: 'y', to: 'x/REFS' }))).toBe('FILE.UNSAFE_NAME');
    expect(refusal(() => after(emptyFileTree(), write('HEAD'), write('commondir')))).toBe('FILE.UNSAFE_NAME');
  });

  it('of an older log gets no further part, and other files next to it', () => {
    const tree = older('r/HEAD', 'r/objects/a', 'r/refs/heads/x');
    expect(refusal(() => after(tree, write('r/config')))).toBe('FILE.UNSAFE_NAME');
    expect(refusal(() => after(tree, write('r/hooks/post-checkout')))).toBe('FILE.UNSAFE_NAME');
    expect(after(tree, write('r/README.md')).files.has('r/README.md')).toBe(true);
  });

  it('is no folder with some of the names', () => {
    const tree = after(
      emptyFileTree(),
      write('HEAD'),
      write('config'),
      write('refs/a'),
      write('src/objects/b'),
    );
    expect(tree.files.size).toBe(4);
  });
});
