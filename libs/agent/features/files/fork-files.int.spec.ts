import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { FileTreeEvent } from '@antiphon/contracts/agent';
import { uuidIds } from '@antiphon/observability';
import { fileTreeIdOf } from '../derived-ids.js';
import { createTreesWorld } from '../testing/trees-world.js';
import type { TreesWorld } from '../testing/trees-world.js';

const FILES = 10_000;
const PAGE = 500;
const WORKSPACE = 'default';
const BASE = fileTreeIdOf(WORKSPACE);
const MAX_FORK_MS = 200;
const shared = { cause: { actor: 'local' }, at: '2026-01-01T00:00:00.000Z' };

let world: TreesWorld;
beforeAll(async () => {
  world = await createTreesWorld();
}, 60_000);
afterAll(() => world.close(), 60_000);

const written = (n: number, version = 1): FileTreeEvent => ({
  type: 'FileWritten',
  schemaVersion: 1,
  data: {
    ...{ ...shared, path: `folder${n % 100}/file${n}.txt`, size: 1, mode: 0o644, before: null },
    digest: createHash('sha256').update(`${n}/${version}`).digest('hex'),
  },
});

describe('a fork of the tree of 10,000 files', () => {
  it(`has the files as of a version within ${MAX_FORK_MS} ms, and copies none`, async () => {
    const trees = world.createTrees();
    for (let from = 0; from < FILES; from += PAGE)
      await trees.commit(WORKSPACE, BASE, () => ({
        events: Array.from({ length: PAGE }, (_, index) => written(from + index)),
      }));
    const before = await trees.read(WORKSPACE, BASE);
    await trees.commit(WORKSPACE, BASE, () => ({ events: [written(FILES)] }));
    const times: number[] = [];
    for (let round = 0; round < 5; round++) {
      const fork = fileTreeIdOf(WORKSPACE, uuidIds.next());
      const startedAt = performance.now();
      const data = { ...shared, base: BASE, version: before.version + (round > 0 ? 1 : 0) };
      const forked: FileTreeEvent = { type: 'FileTreeForked', schemaVersion: 1, data };
      const { tree } = await trees.commit(WORKSPACE, fork, () => ({ events: [forked] }));
      times.push(performance.now() - startedAt);
      expect(tree.files.size).toBe(data.version);
      const { events } = await trees.readFacts(WORKSPACE, fork, { limit: 5 });
      expect(events.map(({ type }) => type)).toEqual(['FileTreeForked']);
    }
    // The first one is of an older version than the cached one: it begins with the snapshot.
    const sorted = times.sort((a, b) => a - b);
    expect(sorted[2]).toBeLessThan(MAX_FORK_MS);
  });
});
