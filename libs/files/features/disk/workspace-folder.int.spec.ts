import {
  chmodSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { DISK_FAILPOINTS, armFailpoints } from '@antiphon/kernel';
import type { FailpointName } from '@antiphon/kernel';
import { DiskWorld, LIMITS } from '../testing/disk-world.js';
import { NO_DISK_STATE } from './disk-state.js';
import type { WorkspaceFolder } from './workspace-folder.js';

let world: DiskWorld;
let follower: WorkspaceFolder;

beforeEach(async () => {
  world = new DiskWorld();
  await world.lead();
  follower = await world.startFollower();
});
afterEach(async () => {
  armFailpoints(null);
  await world.close();
});

const restart = async (): Promise<void> => {
  follower = await world.startFollower();
};

describe('the folder of a workspace', () => {
  it('has the files of the tree, with their modes, and follows its changes', async () => {
    await world.writeTree('a/b.txt', 'one');
    await world.writeTree('c.sh', 'run');
    await follower.sync();
    expect(world.disk()).toEqual({ 'a/b.txt': 'one', 'c.sh': 'run' });
    await world.writeTree('a/b.txt', 'two');
    await world.change([{ op: 'move', path: 'c.sh', to: 'bin/c.sh' }]);
    expect(await follower.sync()).toEqual({ written: 2, removed: 1, outside: 0, conflicts: 0, refused: [] });
    expect(world.disk()).toEqual({ 'a/b.txt': 'two', 'bin/c.sh': 'run' });
    await world.deleteTree('a/b.txt');
    await follower.sync();
    expect(readdirSync(world.root)).toEqual(['.git', 'bin']);
    expect(statSync(join(world.root, 'bin/c.sh')).mode & 0o777).toBe(0o644);
  });

  it('changes nothing in a second round or after a restart', async () => {
    await world.writeTree('a', 'one');
    await follower.sync();
    const none = { written: 0, removed: 0, outside: 0, conflicts: 0, refused: [] };
    expect(await follower.sync()).toEqual(none);
    await restart();
    expect(await follower.sync()).toEqual(none);
    expect(await world.facts()).toEqual(['FileWritten a']);
  });

  it('records what another program creates, changes and removes, also while no process runs', async () => {
    await world.writeTree('a', 'one');
    await world.writeTree('b', 'two');
    await follower.sync();
    world.writeDisk('a', 'theirs');
    world.writeDisk('new/c', 'made');
    world.deleteDisk('b');
    await restart();
    expect(await follower.sync()).toMatchObject({ outside: 3, conflicts: 0, written: 0, removed: 0 });
    expect(await world.tree()).toEqual({ a: 'theirs', 'new/c': 'made' });
    expect(world.disk()).toEqual({ a: 'theirs', 'new/c': 'made' });
    expect((await world.facts()).slice(2)).toEqual([
      'FileChangedOutside a',
      'FileChangedOutside b',
      'FileChangedOutside new/c',
    ]);
  });

  // @shows chats-C7
  it('keeps the mode of an executable file that a tool edits', async () => {
    follower = await world.startFollower(LIMITS, true);
    const stored = await world.trees.putBytes('default', Buffer.from('old'));
    await world.change([{ op: 'write', path: 'run.sh', ...stored, mode: 0o755 }]);
    await follower.sync();
    // An edit of a tool names no mode (file-tools.int.spec.ts).
    await world.writeTree('run.sh', 'new');
    await follower.sync();
    expect(world.disk()).toEqual({ 'run.sh': 'new' });
    expect(statSync(join(world.root, 'run.sh')).mode & 0o777).toBe(0o755);
    expect(await follower.sync()).toMatchObject({ written: 0, outside: 0 });
  });

  it('records the execute bit that another program sets', async () => {
    follower = await world.startFollower(LIMITS, true);
    await world.writeTree('run.sh', 'x');
    await follower.sync();
    chmodSync(join(world.root, 'run.sh'), 0o755);
    await follower.sync();
    expect((await world.trees.read('default', world.treeId)).files.get('run.sh')?.mode).toBe(0o755);
  });

  it('keeps both versions of a conflict', async () => {
    await world.writeTree('doc.md', 'base');
    await follower.sync();
    await world.writeTree('doc.md', 'ours');
    world.writeDisk('doc.md', 'theirs');
    expect(await follower.sync()).toMatchObject({ conflicts: 1, written: 1 });
    const both = { 'doc.md': 'theirs', 'doc (conflict 2).md': 'ours' };
    expect(await world.tree()).toEqual(both);
    expect(world.disk()).toEqual(both);
    expect((await world.facts()).slice(2)).toEqual([
      'FileChangedOutside doc.md',
      'FileWritten doc (conflict 2).md',
    ]);
  });

  it('keeps a changed file that the tree deleted, and a changed tree file that was removed', async () => {
    await world.writeTree('a', 'one');
    await world.writeTree('b', 'one');
    await follower.sync();
    await world.deleteTree('a');
    world.writeDisk('a', 'theirs');
    await world.writeTree('b', 'two');
    world.deleteDisk('b');
    await follower.sync();
    expect(world.disk()).toEqual({ a: 'theirs', b: 'two' });
    expect(await world.tree()).toEqual({ a: 'theirs', b: 'two' });
  });

  it('builds a lost folder again and deletes nothing in the tree', async () => {
    await world.writeTree('a', 'one');
    await follower.sync();
    rmSync(world.root, { recursive: true });
    await follower.sync();
    expect(world.disk()).toEqual({ a: 'one' });
    rmSync(world.root, { recursive: true });
    await restart();
    await follower.sync();
    expect([world.disk(), await world.facts()]).toEqual([{ a: 'one' }, ['FileWritten a']]);
  });

  it('leaves links, clashing names, chats and large files as they are and names them', async () => {
    await world.writeTree('Readme', 'one');
    await follower.sync();
    symlinkSync('/etc', join(world.root, 'link'));
    world.writeDisk('readme', 'clash');
    world.writeDisk('a.chat', 'x');
    world.writeDisk('large', 'x'.repeat(LIMITS.maxFileBytes + 1));
    const { refused } = await follower.sync();
    expect([...refused].sort()).toEqual(['a.chat', 'large', 'link', 'readme']);
    expect(await world.tree()).toEqual({ Readme: 'one' });
    expect(world.disk()['readme']).toBe('clash');
  });

  it('does not write through a link that stands for a folder of the tree', async () => {
    mkdirSync(join(world.base, 'outside'));
    await follower.sync();
    symlinkSync(join(world.base, 'outside'), join(world.root, 'd'));
    await world.writeTree('d/f', 'one');
    expect((await follower.sync()).refused).toEqual(['d', 'd/f']);
    expect(readdirSync(join(world.base, 'outside'))).toEqual([]);
    rmSync(join(world.root, 'd'));
    await follower.sync();
    expect(world.disk()).toEqual({ 'd/f': 'one' });
  });

  it('refuses more foreign files than the quota, and the tree stays within it', async () => {
    follower = await world.startFollower({ ...LIMITS, maxFiles: 2 });
    for (const name of ['a', 'b', 'c']) world.writeDisk(name, name);
    expect((await follower.sync()).refused).toEqual(['c']);
    expect(Object.keys(await world.tree())).toEqual(['a', 'b']);
  });

  it('does not take a damaged state for an empty folder', async () => {
    await world.writeTree('a', 'one');
    await follower.sync();
    writeFileSync(join(world.base, '.antiphon/state/default.json'), '{"version":');
    await world.writeTree('a', 'two');
    await restart();
    await follower.sync();
    expect(Object.values(world.disk()).sort()).toEqual(['one', 'two']);
    expect(NO_DISK_STATE.version).toBe(0);
  });
});

describe('a process that is killed while it writes the folder', () => {
  /** Runs a round that never gets past the nth pass of a point, as after kill -9. */
  const syncUntil = async (point: FailpointName, nth: number): Promise<boolean> => {
    let passes = 0;
    const reached = Promise.withResolvers<boolean>();
    armFailpoints((name) => {
      if (name !== point || ++passes !== nth) return Promise.resolve();
      reached.resolve(true);
      return new Promise(() => undefined);
    });
    const isDone = follower.sync().then(() => false);
    const isReached = await Promise.race([reached.promise, isDone]);
    armFailpoints(null);
    return isReached;
  };

  const POINTS = [
    ...DISK_FAILPOINTS,
    'agent.file.stored',
    'agent.file.decided',
    'agent.file.recorded',
  ] as const;

  it.each(POINTS)('leaves old or new bytes at each pass of %s', async (point) => {
    for (let nth = 1; ; nth++) {
      const own = `own${nth}`;
      await world.writeTree('a', `${own}-before`);
      await world.writeTree('gone', own);
      world.writeDisk('foreign', `foreign${nth}-before`);
      world.writeDisk('both', `both${nth}-before`);
      await follower.sync();
      await world.writeTree('a', `${own}-after`);
      await world.writeTree('both', `both${nth}-ours`);
      await world.deleteTree('gone');
      world.writeDisk('foreign', `foreign${nth}-after`);
      world.writeDisk('both', `both${nth}-theirs`);
      const isReached = await syncUntil(point, nth);
      const { a, foreign, both } = world.disk();
      expect([`${own}-before`, `${own}-after`]).toContain(a);
      expect([foreign, both]).toEqual([`foreign${nth}-after`, `both${nth}-theirs`]);
      await restart();
      await follower.sync();
      await follower.sync();
      expect(world.disk()).toEqual(await world.tree());
      const texts = Object.values(world.disk());
      expect(texts).toEqual(
        expect.arrayContaining([`${own}-after`, `foreign${nth}-after`, `both${nth}-ours`]),
      );
      expect(world.disk()).toMatchObject({ both: `both${nth}-theirs` });
      expect(world.disk()).not.toHaveProperty('gone');
      const partial = join(world.base, '.antiphon/partial/default');
      expect(readdirSync(partial)).toEqual([]);
      if (!isReached) return;
    }
  });

  it('leaves a readable state at each pass', async () => {
    await world.writeTree('a', 'one');
    await syncUntil('files.disk.renamed', 1);
    const state = join(world.base, '.antiphon/state/default.json');
    expect(() => JSON.parse(readFileSync(state, 'utf8')) as unknown).not.toThrow();
  });
});
