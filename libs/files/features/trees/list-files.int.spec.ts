import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import type { FileChangeView, FileEntryView } from '@antiphon/contracts/agent';
import { createTestDatabase } from '@antiphon/testing';
import { WORKSPACE, createAgentWorld } from '@antiphon/agent-features/testing/agent-world';
import type { AgentWorld } from '@antiphon/agent-features/testing/agent-world';
import { FilesHandler } from './files.handler.js';

jest.setTimeout(30_000);

const FILES = 120;
const pathOf = (n: number): string => `folder${n % 7}/${n % 2 === 0 ? 'b' : 'B'}${n}.txt`;

let world: AgentWorld;
let files: FilesHandler;
let version: number;

beforeAll(async () => {
  world = await createAgentWorld(await createTestDatabase(), process.env['ANTIPHON_TEST_NATS_URL'] ?? '');
  const agent = world.process();
  const { services } = agent.runtime;
  files = agent.get(FilesHandler);
  const treeId = await services.workspaceFiles.treeIdOf(WORKSPACE);
  const { digest, size } = await services.files.putBytes(WORKSPACE, Buffer.from('x'));
  const writes = Array.from({ length: FILES }, (_, n) => ({
    op: 'write' as const,
    path: pathOf(n),
    digest,
    size,
  }));
  const request = { workspace: WORKSPACE, treeId, cause: { actor: 'local' } };
  version = (await services.workspaceFiles.change(request, () => writes)).version;
});
afterAll(() => world?.close());

const whole = { workspace: WORKSPACE, path: '', recursive: true, bin: false, foldersFirst: false };
/** Reads all pages of a list. */
const listPages = async (limit: number): Promise<{ entries: FileEntryView[]; totals: Set<number> }> => {
  const [entries, totals]: [FileEntryView[], Set<number>] = [[], new Set()];
  for (let cursor: string | null | undefined; cursor !== null;) {
    const page = await files.list({
      ...whole,
      limit,
      at: version,
      ...(cursor === undefined ? {} : { cursor }),
    });
    entries.push(...(page.entries as FileEntryView[]));
    totals.add(page.total);
    cursor = page.nextCursor;
  }
  return { entries, totals };
};

describe('a list of files', () => {
  // @shows chats-C12
  it('has the same order and the total on each page, of any size', async () => {
    const { entries } = await files.list({ ...whole, limit: 1_000, at: version });
    expect(entries).toHaveLength(FILES);
    for (const limit of [1, 7, 50, FILES]) {
      const paged = await listPages(limit);
      expect(paged.entries).toEqual(entries);
      expect([...paged.totals]).toEqual([FILES]);
    }
  });

  it('of one level has the folders with the number and the bytes of their files', async () => {
    const { entries, total } = await files.list({ ...whole, recursive: false, limit: 1_000 });
    expect(total).toBe(7);
    expect(entries.map(({ kind, path }) => [kind, path])).toEqual(
      Array.from({ length: 7 }, (_, n) => ['folder', `folder${n}`]),
    );
    expect(entries.reduce((sum, entry) => sum + (entry.files ?? 0), 0)).toBe(FILES);
    expect(entries.reduce((sum, entry) => sum + entry.size, 0)).toBe(FILES);
  });

  it('of one level has the folders first where the request wants it', async () => {
    const { services } = world.process().runtime;
    const treeId = await services.workspaceFiles.treeIdOf(WORKSPACE);
    const request = { workspace: WORKSPACE, treeId, cause: { actor: 'local' } };
    const { digest, size } = await services.files.putBytes(WORKSPACE, Buffer.from('x'));
    const { version: at } = await services.workspaceFiles.change(request, () => [
      { op: 'write', path: 'a.txt', digest, size },
    ]);
    const list = async (foldersFirst: boolean) =>
      (await files.list({ ...whole, recursive: false, foldersFirst, limit: 1_000, at })).entries;
    expect((await list(false))[0]?.path).toBe('a.txt');
    expect((await list(true)).map(({ path }) => path)).toEqual([
      ...Array.from({ length: 7 }, (_, n) => `folder${n}`),
      'a.txt',
    ]);
  });

  it('names the time and the actor of the last change, of a folder those of its newest file', async () => {
    const { entries } = await files.list({ ...whole, recursive: false, limit: 1_000, at: version });
    const { changes } = await files.history({ workspace: WORKSPACE, path: 'folder3', limit: 1, at: version });
    const folder = entries.find(({ path }) => path === 'folder3');
    expect(folder).toMatchObject({ changedAt: changes[0]?.at, changedBy: 'local' });
    expect(folder?.version).toBe(changes[0]?.version);
  });

  it('finds files by a part of their path, without regard to case, and counts only them', async () => {
    const find = (path: string, q: string) => files.list({ ...whole, path, q, limit: 5, at: version });
    const found = await find('', 'b11');
    const all = await files.list({ ...whole, limit: 1_000, at: version });
    const expected = all.entries.filter(({ path }) => /b11/i.test(path));
    expect(found.entries).toEqual(expected.slice(0, 5));
    expect(found.total).toBe(11);
    expect((await find('folder3', 'folder3')).total).toBe(0);
  });
});

describe('the history of files', () => {
  it('has each change once over its pages, newest first', async () => {
    const changes: FileChangeView[] = [];
    for (let cursor: string | null | undefined; cursor !== null;) {
      const more = cursor === undefined ? {} : { cursor };
      const page = await files.history({ workspace: WORKSPACE, path: '', limit: 13, at: version, ...more });
      changes.push(...(page.changes as FileChangeView[]));
      cursor = page.nextCursor;
    }
    expect(changes.map((change) => change.version)).toEqual(
      Array.from({ length: FILES }, (_, index) => FILES - index),
    );
  });

  it('follows a file through its moves, also when a move is on an earlier page', async () => {
    const agent = world.process();
    const { services } = agent.runtime;
    const treeId = await services.workspaceFiles.treeIdOf(WORKSPACE);
    const request = { workspace: WORKSPACE, treeId, cause: { actor: 'local' } };
    const { digest, size } = await services.files.putBytes(WORKSPACE, Buffer.from('moved'));
    await services.workspaceFiles.change(request, () => [{ op: 'write', path: 'first', digest, size }]);
    for (const [path, to] of [
      ['first', 'second'],
      ['second', 'third'],
    ] as const)
      await services.workspaceFiles.change(request, () => [{ op: 'move', path, to }]);
    const pages: string[] = [];
    for (let cursor: string | null | undefined; cursor !== null;) {
      const more = cursor === undefined ? {} : { cursor };
      const page = await files.history({ workspace: WORKSPACE, path: 'third', limit: 1, ...more });
      pages.push(...page.changes.map(({ type, path }) => `${type} ${path}`));
      cursor = page.nextCursor;
    }
    expect(pages).toEqual(['moved second', 'moved first', 'written first']);
  });
});

describe('the files as of a position of the log', () => {
  it('are those of the version at that position, in lists, files and histories', async () => {
    const { services } = world.process().runtime;
    const treeId = await services.workspaceFiles.treeIdOf(WORKSPACE);
    const request = { workspace: WORKSPACE, treeId, cause: { actor: 'local' } };
    const { digest, size } = await services.files.putBytes(WORKSPACE, Buffer.from('late'));
    const late = await services.workspaceFiles.change(request, () => [
      { op: 'write', path: 'late.txt', digest, size },
    ]);
    const { changes } = await files.history({ workspace: WORKSPACE, path: 'late.txt', limit: 1 });
    const position = changes[0]?.eventPosition ?? 0;
    const listAt = (then: number) => files.list({ ...whole, q: 'late', limit: 10, position: then });
    expect(await listAt(position)).toMatchObject({ version: late.version, total: 1 });
    expect(await listAt(position - 1)).toMatchObject({ version: late.version - 1, total: 0 });
    expect(await listAt(0)).toMatchObject({ version: 0, total: 0 });
    const stat = { workspace: WORKSPACE, path: 'late.txt' };
    expect((await files.stat({ ...stat, position })).version).toBe(late.version);
    await expect(files.stat({ ...stat, position: position - 1 })).rejects.toMatchObject({
      code: 'FILE.NOT_FOUND',
    });
    const before = await files.history({ workspace: WORKSPACE, path: '', limit: 1, position: position - 1 });
    expect(before.changes[0]?.version).toBe(late.version - 1);
  });
});
