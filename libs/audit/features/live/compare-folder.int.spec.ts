import { createHash } from 'node:crypto';
import { chmod, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { JsonObject } from '@antiphon/kernel';
import { AT, appendFacts, inAuditWorld, reader } from '../audit-world.spec.js';
import { compareFolders } from './compare-folder.js';
import { pollWithin } from './poll-within.js';

inAuditWorld();

const STREAM = 'file-tree-00000000-0000-4000-8000-000000000009';
const FORK = 'file-tree-00000000-0000-4000-8000-000000000010';
const digestOf = (text: string): string => createHash('sha256').update(text).digest('hex');
const shared = { cause: { actor: 'local' }, at: AT };
const change = (type: string, path: string, text: string, more: JsonObject = {}): [string, JsonObject] => [
  type,
  { ...shared, path, digest: digestOf(text), size: text.length, mode: 0o644, ...more },
];

let folder: string;
const write = async (path: string, text: string): Promise<void> => {
  await mkdir(join(folder, 'default', path, '..'), { recursive: true });
  await writeFile(join(folder, 'default', path), text);
};
const compare = async () => {
  const { findings, checked } = await compareFolders(reader, folder, pollWithin(0));
  return { checked, found: findings.map(({ kind, at, message }) => `${kind} ${at.position} ${message}`) };
};

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'antiphon-folder-'));
  await appendFacts([
    STREAM,
    change('FileWritten', 'docs/a.md', 'one', { before: null }),
    change('FileWritten', 'docs/a.md', 'two', { before: digestOf('one') }),
    change('FileWritten', 'run.sh', 'x', { before: null, mode: 0o755 }),
    change('FileMoved', 'run.sh', 'x', { to: 'bin/run.sh', mode: 0o755 }),
    change('FileWritten', 'old', 'y', { before: null }),
    change('FileDeleted', 'old', 'y'),
  ]);
  // The tree of a fork has no folder.
  await appendFacts([
    FORK,
    ['FileTreeForked', { ...shared, base: STREAM.slice('file-tree-'.length), version: 2 }],
    change('FileWritten', 'fork.md', 'f', { before: null }),
  ]);
  await write('docs/a.md', 'two');
  await write('bin/run.sh', 'x');
  await chmod(join(folder, 'default/bin/run.sh'), 0o755);
});
afterEach(() => rm(folder, { recursive: true, force: true }));

describe('the folder of a workspace compared with the fold of its facts', () => {
  it('is equal after writes, moves and deletions', async () => {
    expect(await compare()).toEqual({ checked: 2, found: [] });
  });

  it.each<[string, () => Promise<unknown>, string]>([
    [
      'other bytes',
      () => write('docs/a.md', 'one'),
      'violation 2 docs/a.md has other bytes or another mode in the folder',
    ],
    [
      'another mode',
      () => chmod(join(folder, 'default/bin/run.sh'), 0o644),
      'violation 4 bin/run.sh has other bytes or another mode in the folder',
    ],
    [
      'a missing file',
      () => rm(join(folder, 'default/docs/a.md')),
      'violation 2 docs/a.md is not in the folder as a plain file',
    ],
    [
      'a file that no fact names',
      () => write('old', 'y'),
      'violation 0 old is in the folder and not in the tree',
    ],
    [
      'a link, which stays open',
      () => symlink('/etc/passwd', join(folder, 'default/link')),
      'open 0 link is in the folder and not in the tree',
    ],
  ])('names %s', async (_, alter, finding) => {
    await alter();
    expect((await compare()).found).toEqual([finding]);
  });

  it('names a file that waits to be written as open', async () => {
    await rm(join(folder, 'default/docs/a.md'));
    await mkdir(join(folder, '.antiphon/state'), { recursive: true });
    const state = { version: 6, target: null, pending: { 'docs/a.md': null } };
    await writeFile(join(folder, '.antiphon/state/default.json'), JSON.stringify(state));
    expect((await compare()).found).toEqual(['open 2 docs/a.md is not in the folder as a plain file']);
  });

  it('names files that the copy leaves out as open, and ignores its mark and the modes of a plain copy', async () => {
    await mkdir(join(folder, '.antiphon/state'), { recursive: true });
    const state = { version: 6, target: null, pending: {}, isPlain: true, leftOut: ['.vscode', 'docs/a.md'] };
    await writeFile(join(folder, '.antiphon/state/default.json'), JSON.stringify(state));
    await write('.git', 'no repository');
    await write('.vscode/tasks.json', '{}');
    await rm(join(folder, 'default/docs/a.md'));
    await chmod(join(folder, 'default/bin/run.sh'), 0o644);
    await write('docs/.git', 'other');
    expect((await compare()).found).toEqual([
      'open 2 docs/a.md is not in the folder as a plain file',
      'open 0 .vscode/tasks.json is in the folder and not in the tree',
      'violation 0 docs/.git is in the folder and not in the tree',
    ]);
  });
});
