import { linkSync, mkdirSync, readFileSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { createTestDatabase } from '@antiphon/testing';
import { WORKSPACE, createAgentWorld, testConfig, until } from '@antiphon/agent-features/testing/agent-world';
import type { AgentWorld, TestProcess } from '@antiphon/agent-features/testing/agent-world';
import { raceToolsForOutside, startCopy } from '../testing/copied-files.js';
import type { CopiedFiles } from '../testing/copied-files.js';
import { DISK_CASES, PATH_CASES } from '../testing/path-corpus.js';
import { call, runCalls, runStep } from '@antiphon/agent-features/testing/tool-calls';

jest.setTimeout(60_000);

const TOOLS = ['ls', 'read', 'write', 'edit', 'rm', 'move', 'search'];

let world: AgentWorld;
let agent: TestProcess;
let base: string;
let root: string;
let copy: CopiedFiles;
let marks = 0;

beforeAll(async () => {
  world = await createAgentWorld(await createTestDatabase(), process.env['ANTIPHON_TEST_NATS_URL'] ?? '');
  agent = world.process({ config: testConfig({ tools: TOOLS, maxIterations: 50 }) });
}, 60_000);
afterAll(() => world?.close(), 30_000);

/** The agent's process keeps a copy of the files on the disk, as the service does. */
beforeEach(async () => {
  copy = await startCopy(world, agent);
  ({ base, root } = copy);
});
afterEach(() => copy.stop());

const makeOutside = (): string => {
  const outside = join(base, 'outside');
  mkdirSync(outside);
  writeFileSync(join(outside, 'passwd'), 'secret');
  return outside;
};
const isUntouched = (outside: string): boolean =>
  readdirSync(outside).join() === 'passwd' && readFileSync(join(outside, 'passwd'), 'utf8') === 'secret';
const pathsInTree = async (): Promise<string[]> => {
  const { workspaceFiles } = agent.runtime.services;
  const treeId = await workspaceFiles.treeIdOf(WORKSPACE);
  return (await workspaceFiles.list(WORKSPACE, treeId, { folder: '' })).files.map(({ path }) => path);
};
/** Waits until the folder has been compared again, after what a spec put into it. */
const compared = async (): Promise<string> => {
  const mark = `mark-${++marks}`;
  writeFileSync(join(root, mark), mark);
  await until(async () => (await pathsInTree()).includes(mark));
  return mark;
};
const codes = (results: readonly string[]): string[] => results.map((result) => result.split(':')[0] ?? '');
const run = async (...calls: Parameters<typeof runCalls>[2][]): Promise<readonly string[]> =>
  (await runCalls(world, agent, ...calls)).results;

describe('the tools of an agent', () => {
  it.each(PATH_CASES)('refuse $id and make no file', async ({ input }) => {
    const outside = makeOutside();
    const results = await runStep(
      world,
      agent,
      call('read', { path: input }),
      call('write', { path: input, content: 'x' }),
      call('edit', { path: input, old: 'x', new: 'y' }),
      call('edit', { edits: [{ path: input, old: 'x', new: 'y' }] }),
      call('rm', { path: input }),
      call('rm', { path: input, files: 1 }),
      call('move', { path: input, to: 'inside.txt' }),
      call('move', { path: 'inside.txt', to: input }),
      // The folder `.` is the root.
      ...(input === '.' ? [] : [call('ls', { path: input }), call('search', { path: input, query: 'x' })]),
    );
    expect(results).toHaveLength(input === '.' ? 8 : 10);
    for (const { isError, content } of results)
      expect([isError, content]).toEqual([
        true,
        expect.stringMatching(/ is not allowed: |Too big: expected string to have <=1024/),
      ]);
    expect(await pathsInTree()).toEqual([]);
    expect(isUntouched(outside)).toBe(true);
  });
});

/** The cases of the corpus that need a file system, by id. */
const CASES: Readonly<Record<string, () => Promise<void>>> = {
  'path-018-symlink-out': async () => {
    const outside = makeOutside();
    symlinkSync(outside, join(root, 'x'));
    symlinkSync(join(outside, 'passwd'), join(root, 'last'));
    const mark = await compared();
    const results = await run(
      call('read', { path: 'x/passwd' }),
      call('read', { path: 'last' }),
      call('search', { query: 'secret' }),
      call('write', { path: 'x/new', content: 'ours' }),
      call('write', { path: 'x/passwd', content: 'ours' }),
      call('write', { path: 'last', content: 'ours' }),
    );
    expect(codes(results.slice(0, 2))).toEqual(['FILE.NOT_FOUND', 'FILE.NOT_FOUND']);
    expect(results[2]).toContain('"returned":0');
    const next = await compared();
    expect(await pathsInTree()).toEqual(['last', mark, next, 'x/new', 'x/passwd']);
    expect(codes(await run(call('rm', { path: 'x/passwd' }), call('rm', { path: 'last' })))).toHaveLength(2);
    await compared();
    expect(isUntouched(outside)).toBe(true);
  },
  'path-019-symlink-swap-race': async () => {
    for (const part of ['folder', 'file'] as const) {
      const race = await raceToolsForOutside(world, agent, copy, { rounds: 10, part });
      expect(race).toMatchObject({ tries: 30, outside: 0 });
      expect(race.swaps).toBeGreaterThan(10);
    }
  },
  'path-020-hardlink-out': async () => {
    const outside = makeOutside();
    linkSync(join(outside, 'passwd'), join(root, 'hard'));
    await compared();
    const results = await run(
      call('read', { path: 'hard' }),
      call('write', { path: 'hard', content: 'ours' }),
      call('edit', { path: 'hard', old: 'ours', new: 'edited' }),
    );
    expect(codes(results)[0]).toBe('FILE.NOT_FOUND');
    await compared();
    expect(isUntouched(outside)).toBe(true);
    await run(call('rm', { path: 'hard' }));
    await compared();
    expect(isUntouched(outside)).toBe(true);
  },
  // No tool and no route unpacks an archive. These are the entries that another program leaves.
  'path-024-tar-links': async () => {
    const outside = makeOutside();
    symlinkSync(outside, join(root, 'a'));
    symlinkSync('../../outside', join(root, 'relative'));
    symlinkSync(join(base, 'none'), join(root, 'dangling'));
    linkSync(join(outside, 'passwd'), join(root, 'b'));
    const mark = await compared();
    expect(await pathsInTree()).toEqual([mark]);
    await run(...['a/x', 'relative/x', 'dangling', 'b'].map((path) => call('write', { path, content: 'x' })));
    await compared();
    expect(isUntouched(outside)).toBe(true);
    expect(readdirSync(base).sort()).toEqual(['files', 'outside']);
  },
  'path-026-case-collide': async () => {
    writeFileSync(join(root, 'readme'), 'small');
    writeFileSync(join(root, 'README'), 'large');
    await compared();
    expect((await pathsInTree()).filter((path) => /readme/i.test(path))).toEqual([expect.any(String)]);
    const results = await run(
      call('write', { path: 'docs/GUIDE', content: 'one' }),
      call('write', { path: 'docs/guide', content: 'two' }),
      call('write', { path: 'Docs/other', content: 'two' }),
      call('write', { path: 'caf\u00e9', content: 'one' }),
      call('write', { path: 'CAFE\u0301', content: 'two' }),
      call('move', { path: 'docs/GUIDE', to: 'cafÉ' }),
    );
    expect([1, 2, 4, 5].map((index) => codes(results)[index])).toEqual(Array(4).fill('FILE.PATH_CLASH'));
  },
};

describe('the tools of an agent and the copy on disk', () => {
  it.each(DISK_CASES)('touch nothing outside: %s', async (id) => {
    const test = CASES[id];
    expect(test).toBeDefined();
    await test?.();
  });
});
