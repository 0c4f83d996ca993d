import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { FileTreeEvent } from '@antiphon/contracts/agent';
import { inWorkspace } from '@antiphon/database';
import { uuidIds } from '@antiphon/observability';
import { percentile, report } from '@antiphon/testing/load';
import { fileTreeIdOf } from '@antiphon/agent-log/derived-ids';
import { createTreesWorld } from '../testing/trees-world.js';
import type { TreesWorld } from '../testing/trees-world.js';
import type { FileTrees } from './file-trees.js';

const FILES = 10_000;
const FEW = 10;
const PAGE = 500;
const ROUNDS = 9;
const WORKSPACE = 'default';
const BASE = fileTreeIdOf(WORKSPACE);
const SMALL = fileTreeIdOf(WORKSPACE, uuidIds.next());
const MAX_FORK_MS = 200;
/** Bound for 1,000 times the files: a fork does not read, write or copy them one by one. */
const MAX_RATIO = 10;
const shared = { cause: { actor: 'local' }, at: '2026-01-01T00:00:00.000Z' };

let world: TreesWorld;
let trees: FileTrees;
beforeAll(async () => {
  world = await createTreesWorld();
  trees = world.createTrees();
  await writeFiles(BASE, FILES);
  await writeFiles(SMALL, FEW);
}, 60_000);
afterAll(() => world.close(), 60_000);

const bodyOf = (treeId: string, n: number): Buffer => Buffer.from(`${treeId}/${n}`);
const written = (treeId: string, n: number): FileTreeEvent => ({
  type: 'FileWritten',
  schemaVersion: 1,
  data: {
    ...{ ...shared, path: `folder${n % 100}/file${n}.txt`, mode: 0o644, before: null },
    size: bodyOf(treeId, n).byteLength,
    digest: createHash('sha256').update(bodyOf(treeId, n)).digest('hex'),
  },
});

/** Writes files with their bytes, a page per append. */
const writeFiles = async (treeId: string, count: number): Promise<void> => {
  for (let from = 0; from < count; from += PAGE) {
    const page = Array.from({ length: Math.min(PAGE, count - from) }, (_, index) => from + index);
    await inWorkspace(world.pool, WORKSPACE).query(
      `insert into file_blobs (workspace, digest, size, body, written_at)
      select $1, encode(sha256(b.body), 'hex'), octet_length(b.body), b.body, clock_timestamp()
      from unnest($2::bytea[]) as b (body)`,
      [WORKSPACE, page.map((n) => bodyOf(treeId, n))],
    );
    await trees.commit(WORKSPACE, treeId, () => ({ events: page.map((n) => written(treeId, n)) }));
  }
};
const countBlobs = async (): Promise<number> => {
  const { rows } = await inWorkspace(world.pool, WORKSPACE).query<{ count: string }>(
    'select count(*) from file_blobs',
  );
  return Number(rows[0]?.count);
};
/** Forks a tree as of a version. Returns the time until the fork has its files, ms. */
const fork = async (base: string, version: number): Promise<number> => {
  const treeId = fileTreeIdOf(WORKSPACE, uuidIds.next());
  const startedAt = performance.now();
  const data = { ...shared, base, version };
  const forked: FileTreeEvent = { type: 'FileTreeForked', schemaVersion: 1, data };
  const { tree } = await trees.commit(WORKSPACE, treeId, () => ({ events: [forked] }));
  const elapsed = performance.now() - startedAt;
  expect(tree.files.size).toBe(version);
  const { events } = await trees.readFacts(WORKSPACE, treeId, { limit: 5 });
  expect(events.map(({ type }) => type)).toEqual(['FileTreeForked']);
  return elapsed;
};

// @shows chats-C15
describe('a fork of the tree of 10,000 files', () => {
  it(`has the files as of a version within ${MAX_FORK_MS} ms, and copies no fact and no byte`, async () => {
    const before = await countBlobs();
    expect(before).toBe(FILES + FEW);
    // An older version than the cached one begins with the snapshot.
    await fork(BASE, FILES - 1);
    const times: Record<'large' | 'small', number[]> = { large: [], small: [] };
    for (let round = 0; round < ROUNDS; round++) {
      times.small.push(await fork(SMALL, FEW));
      times.large.push(await fork(BASE, FILES));
    }
    const [small, large] = [percentile(times.small, 0.5), percentile(times.large, 0.5)];
    report(`fork: ${large.toFixed(1)} ms of ${FILES} files, ${small.toFixed(1)} ms of ${FEW}`);
    expect(large).toBeLessThan(MAX_FORK_MS);
    expect(large / small).toBeLessThan(MAX_RATIO);
    expect(await countBlobs()).toBe(before);
  });
});
