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

const whole = { workspace: WORKSPACE, path: '', recursive: true, bin: false };
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
});

describe('the history of files', () => {
  it('has each change once over its pages, newest first', async () => {
    const changes: FileChangeView[] = [];
    for (let cursor: string | null | undefined; cursor !== null;) {
      const more = cursor === undefined ? {} : { cursor };
      const page = await files.history({ workspace: WORKSPACE, path: '', limit: 13, ...more });
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
