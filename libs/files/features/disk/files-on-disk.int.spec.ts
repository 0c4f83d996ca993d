import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { decideFiles } from '@antiphon/files-domain';
import { createLeaseStore } from '@antiphon/event-store';
import { createLogger, systemClock } from '@antiphon/observability';
import { until } from '@antiphon/testing';
import { fileTreeIdOf } from '@antiphon/agent-log/derived-ids';
import { createTreesWorld } from '../testing/trees-world.js';
import type { TreesWorld } from '../testing/trees-world.js';
import type { FileTrees } from '../trees/file-trees.js';
import { readFilesFolder } from './files-follower.js';
import { createFilesOnDisk } from './create-files-on-disk.js';
import type { FilesOnDisk } from './files-on-disk.js';

const LIMITS = { maxFileBytes: 1_000_000, maxFiles: 100, maxBytes: 1e9, maxVersions: 1e6 };
const TIMES = { leaseMs: 900, pollMs: 20, compareMs: 50, searchMs: 50 };

let world: TreesWorld;
let folder: string;
let trees: FileTrees;
let running: { readonly files: FilesOnDisk; readonly stop: () => Promise<void> }[] = [];

beforeAll(async () => {
  world = await createTreesWorld();
}, 60_000);
afterAll(() => world.close(), 60_000);
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'antiphon-files-'));
  trees = world.createTrees();
});
afterEach(async () => {
  await Promise.all(running.map(({ stop }) => stop()));
  running = [];
  rmSync(folder, { recursive: true, force: true });
});

/** Starts what one process runs. */
const start = (owner: string): FilesOnDisk => {
  const files = createFilesOnDisk({
    ...{ folder, pool: world.pool, owner, clock: systemClock, times: TIMES, limits: () => LIMITS },
    ...{ trees: world.createTrees(), leases: createLeaseStore(world.pool) },
    logger: createLogger({ service: 'agent', level: 'fatal' }),
  });
  const stopping = new AbortController();
  const ended = files.run(stopping.signal);
  running.push({ files, stop: () => (stopping.abort(), ended) });
  return files;
};

const write = async (workspace: string, path: string, text: string): Promise<void> => {
  const { digest, size } = await trees.putBytes(workspace, Buffer.from(text));
  const context = { at: '2026-01-01T00:00:00.000Z', cause: { actor: 'local' }, limits: LIMITS };
  await trees.commit(workspace, fileTreeIdOf(workspace), (tree) => ({
    events: decideFiles(tree, [{ op: 'write', path, digest, size }], context),
  }));
};
const onDisk = (workspace: string, path: string): string | null => {
  try {
    return readFileSync(join(folder, workspace, path), 'utf8');
  } catch {
    return null;
  }
};
const inTree = async (workspace: string, path: string): Promise<string | null> => {
  const { files } = await trees.read(workspace, fileTreeIdOf(workspace));
  const file = files.get(path);
  return file ? Buffer.from(await trees.readBytes(workspace, file.digest)).toString() : null;
};

describe('files on disk', () => {
  it('have the trees of all workspaces, each in its own folder', async () => {
    await write('acme', 'a.txt', 'of acme');
    await write('globex', 'a.txt', 'of globex');
    start('one');
    await until(() => onDisk('acme', 'a.txt') === 'of acme' && onDisk('globex', 'a.txt') === 'of globex');
    await write('acme', 'a.txt', 'changed');
    await until(() => onDisk('acme', 'a.txt') === 'changed');
    expect(onDisk('globex', 'a.txt')).toBe('of globex');
    expect(readdirSync(folder)).toEqual(expect.arrayContaining(['.antiphon', 'acme', 'default', 'globex']));
  });

  it('report what another program writes to the tree that every process reads', async () => {
    start('one');
    await until(() => readdirSync(folder).includes('default'));
    writeFileSync(join(folder, 'default', 'made.txt'), 'by hand');
    await until(async () => (await inTree('default', 'made.txt')) === 'by hand');
  });

  it('are written by one process at a time, and by another after it has stopped', async () => {
    const first = start('one');
    await until(() => first.isLeader());
    const second = start('two');
    await write('default', 'b', 'one');
    await until(() => onDisk('default', 'b') === 'one');
    expect([first.isLeader(), second.isLeader()]).toEqual([true, false]);
    await running.shift()?.stop();
    await until(() => second.isLeader());
    await write('default', 'b', 'two');
    await until(() => onDisk('default', 'b') === 'two');
  });

  it('need an absolute folder', () => {
    expect(readFilesFolder({})).toBeNull();
    expect(readFilesFolder({ ANTIPHON_FILES_FOLDER: '/files' })).toBe('/files');
    expect(() => readFilesFolder({ ANTIPHON_FILES_FOLDER: 'files' })).toThrow('must be an absolute path');
  });
});
