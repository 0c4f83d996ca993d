import { describe, expect, it } from '@jest/globals';
import { emptyFileTree, foldFileTree } from './file-tree.js';
import type { FileCommand } from './file-tree.decider.js';
import { SESSIONS, checkRandomHistory, decideFor } from './rewind-histories.spec.js';
import { planRewind } from './rewind.js';

const [mine = '', theirs = ''] = SESSIONS;
const write = (path: string, digit: string): FileCommand => ({
  op: 'write',
  path,
  digest: digit.repeat(64),
  size: 1,
});

/** Rewinds session `mine` to the start of the history. */
const rewind = (...steps: readonly (readonly [session: string, command: FileCommand])[]) => {
  let tree = foldFileTree(emptyFileTree(), decideFor(emptyFileTree(), theirs, [write('old', '0')]));
  const before = tree;
  const changes = steps.flatMap(([session, command]) => {
    const decided = decideFor(tree, session, [command]);
    const from = tree.version;
    tree = foldFileTree(tree, decided);
    return decided.map((event, index) => ({ event, version: from + index + 1 }));
  });
  const plan = planRewind(mine, before, tree, changes);
  const after = foldFileTree(tree, decideFor(tree, mine, plan.commands));
  const files = [...after.files.values()].map(({ path, digest }) => `${path}=${digest.slice(0, 1)}`);
  return { files: files.sort(), conflicts: plan.conflicts.map(({ path }) => path) };
};

describe('a rewind of files', () => {
  it('restores changed and deleted files and removes new ones', () =>
    expect(
      rewind([mine, write('old', '1')], [mine, { op: 'delete', path: 'old' }], [mine, write('new', '2')]),
    ).toEqual({ files: ['old=0'], conflicts: [] }));

  it('takes back a move', () =>
    expect(rewind([mine, { op: 'move', path: 'old', to: 'd/new' }])).toEqual({
      files: ['old=0'],
      conflicts: [],
    }));

  it('leaves a newer change of another and lists it', () =>
    expect(rewind([mine, write('old', '1')], [theirs, write('old', '2')], [theirs, write('x', '3')])).toEqual(
      {
        files: ['old=2', 'x=3'],
        conflicts: ['old'],
      },
    ));

  it('returns to the newest change of another that is under its own', () =>
    expect(rewind([theirs, write('old', '2')], [mine, write('old', '3')])).toEqual({
      files: ['old=2'],
      conflicts: [],
    }));

  it('equals the model in 50 random histories of three sessions', () => {
    for (let seed = 1; seed <= 50; seed++) checkRandomHistory(seed);
  });
});
