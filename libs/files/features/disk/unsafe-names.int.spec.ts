import { execFileSync } from 'node:child_process';
import { chmodSync, existsSync, readFileSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { toNewEvent } from '@antiphon/agent-log/event-envelope';
import { DiskWorld, WORKSPACE } from '../testing/disk-world.js';
import { ignoreCopies } from './copy-mark.js';
import { digestOfBytes } from './safe-folder.js';

let world: DiskWorld;
beforeEach(async () => {
  world = new DiskWorld();
  await world.lead();
});
afterEach(() => world.close());

/** Appends a file as a version of the program did that knew no unsafe names. */
const recordOlder = async (path: string, text: string, mode = 0o644): Promise<void> => {
  const { digest, size } = await world.trees.putBytes(WORKSPACE, Buffer.from(text));
  const data = { at: '2026-01-01T00:00:00.000Z', cause: { actor: 'agent/main' }, path, digest, size, mode };
  const event = { type: 'FileWritten', schemaVersion: 1, data: { ...data, before: null } };
  const { version } = await world.trees.read(WORKSPACE, world.treeId);
  const streamId = `file-tree-${world.treeId}`;
  const events = [toNewEvent(event as never, { next: () => crypto.randomUUID() })];
  await world.store.append({
    workspace: WORKSPACE,
    streams: [{ streamId, expectedVersion: version, events }],
  });
};

/** Writes a file as that version did. */
const leaveOnDisk = (path: string, text: string, mode = 0o644): void => {
  world.writeDisk(path, text);
  chmodSync(join(world.root, path), mode);
};

/** Runs git in a folder as a prompt of a shell does. Returns its exit code and its text. */
const git = (folder: string, ...args: string[]): { code: number; text: string } => {
  const env = { PATH: process.env['PATH'] ?? '', HOME: world.base, GIT_CONFIG_NOSYSTEM: '1', LC_ALL: 'C' };
  try {
    return {
      code: 0,
      text: execFileSync('git', args, { cwd: folder, env, encoding: 'utf8', stdio: 'pipe' }),
    };
  } catch (error) {
    const { status, stderr } = error as { status: number; stderr: string };
    return { code: status, text: stderr };
  }
};

const attack = (evil: string): Record<string, string> => ({
  HEAD: 'ref: refs/heads/x\n',
  config: `[core]\n\trepositoryformatversion = 0\n\tfsmonitor = "touch ${evil}"\n\tbare = false\n\tworktree = .\n`,
  'refs/heads/x': '',
  'objects/x': '',
  'hooks/post-index-change': `#!/bin/sh\ntouch ${evil}\n`,
});

describe('a repository in the files of a workspace', () => {
  const evil = (): string => join(world.base, 'evil');
  const files = (folder: string): [string, string][] =>
    Object.entries(attack(evil())).map(([path, text]) => [`${folder}${path}`, text]);

  it.each(['.git/', 'sub/.git/', '', 'sub/'])(
    'runs nothing at `git status`, also where an older log has it in %j',
    async (folder) => {
      for (const [path, text] of files(folder)) await recordOlder(path, text, 0o755);
      await recordOlder('sub/a.txt', 'a');
      await (await world.startFollower()).sync();
      const at = join(world.root, 'sub');
      for (const cwd of [world.root, at]) {
        const { code, text } = git(cwd, 'status');
        expect([code, text]).toEqual([128, expect.stringMatching(/invalid gitfile format|not a git repo/)]);
      }
      expect(existsSync(evil())).toBe(false);
      expect(world.disk()['sub/a.txt']).toBe('a');
      expect(existsSync(join(world.root, folder, 'HEAD'))).toBe(false);
      // The tree has all of it, for the API.
      expect(Object.keys(await world.tree())).toEqual(expect.arrayContaining([`${folder}HEAD`]));
    },
  );

  it('that an older version wrote is removed from the copy, and a repository of a person stays', async () => {
    for (const [path, text] of files('sub/.git/')) {
      await recordOlder(path, text, 0o755);
      leaveOnDisk(path, text, 0o755);
    }
    leaveOnDisk('own/.git/HEAD', 'ref: refs/heads/mine\n');
    const follower = await world.startFollower();
    await follower.sync();
    expect(existsSync(join(world.root, 'sub/.git'))).toBe(false);
    expect(readFileSync(join(world.root, 'own/.git/HEAD'), 'utf8')).toBe('ref: refs/heads/mine\n');
    await follower.sync();
    expect(Object.keys(await world.tree()).filter((path) => path.startsWith('own'))).toEqual([]);
    expect((await world.facts()).filter((fact) => !fact.startsWith('FileWritten'))).toEqual([]);
  });

  // @shows review2-1-names-on-disk
  it('around the copy does not take it in, and its `git status` names no file of it', async () => {
    git(world.base, 'init');
    await ignoreCopies(world.base);
    await world.writeTree('a.txt', 'a');
    await (await world.startFollower()).sync();
    expect(git(world.root, 'status').code).toBe(128);
    expect(git(world.base, 'add', '-A').text).not.toContain('a.txt');
    expect(git(world.base, 'ls-files').text).not.toContain('a.txt');
  });
});

describe('names of the list in the folder', () => {
  const NAMES = ['.envrc', '.vscode/tasks.json', '.npmrc', 'a/.husky/pre-commit', '.mcp.json', '.GIT/config'];

  it.each(NAMES)('%s is not written, not imported and not removed there', async (path) => {
    await recordOlder(path, 'of an agent');
    const follower = await world.startFollower();
    await follower.sync();
    expect(existsSync(join(world.root, path)) && path !== '.GIT/config').toBe(false);
    leaveOnDisk(path.replace('.GIT', '.Git'), 'of a person');
    await follower.sync();
    await follower.sync();
    expect(await world.tree()).toEqual({ [path]: 'of an agent' });
    expect(readFileSync(join(world.root, path.replace('.GIT', '.Git')), 'utf8')).toBe('of a person');
    await expect(world.writeTree(path, 'again')).rejects.toMatchObject({ code: 'FILE.UNSAFE_NAME' });
  });

  it('leave `.gitignore` as it is: written, changed and imported', async () => {
    await world.writeTree('.gitignore', 'dist/\n');
    const follower = await world.startFollower();
    await follower.sync();
    expect(world.disk()['.gitignore']).toBe('dist/\n');
    world.writeDisk('.gitignore', 'dist/\nout/\n');
    await follower.sync();
    expect(await world.tree()).toEqual({ '.gitignore': 'dist/\nout/\n' });
  });
});

describe('the executable bit', () => {
  const modeOf = (path: string): number => statSync(join(world.root, path)).mode & 0o777;

  it('is not set in the folder, stays in the tree, and that of an older version is removed', async () => {
    await recordOlder('run.sh', 'echo', 0o755);
    await recordOlder('old.sh', 'echo old', 0o755);
    leaveOnDisk('old.sh', 'echo old', 0o755);
    const follower = await world.startFollower();
    await follower.sync();
    expect([modeOf('run.sh'), modeOf('old.sh')]).toEqual([0o644, 0o644]);
    expect(
      readdirSync(world.root).filter((name) => (modeOf(name) & 0o111) !== 0 && name.endsWith('.sh')),
    ).toEqual([]);
    // A person who runs it sets the bit, which is no change of the file.
    chmodSync(join(world.root, 'run.sh'), 0o755);
    await follower.sync();
    world.writeDisk('run.sh', 'echo more');
    await follower.sync();
    const { files } = await world.trees.read(WORKSPACE, world.treeId);
    expect(files.get('run.sh')).toMatchObject({
      mode: 0o755,
      digest: digestOfBytes(Buffer.from('echo more')),
    });
    expect((await world.facts()).slice(2)).toEqual(['FileChangedOutside run.sh']);
  });
});
