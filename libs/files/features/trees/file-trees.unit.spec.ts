import { randomUUID } from 'node:crypto';
import { beforeEach, describe, expect, it, jest } from '@jest/globals';
import { decideFiles } from '@antiphon/files-domain';
import type { FileTree } from '@antiphon/files-domain';
import { createMemoryEventStore, createMemoryLeaseStore } from '@antiphon/event-store/testing';
import { APPENDED_BYTES, FileTrees } from './file-trees.js';
import type { FileTreesDeps } from './file-trees.js';

const TREE = randomUUID();
const LIMITS = { maxFiles: 1e6, maxBytes: 1e9, maxVersions: 1e6, maxFileBytes: 1e8 };

const put = jest.fn<FileTreesDeps['blobs']['put']>((_, bytes) =>
  Promise.resolve({ digest: 'a'.repeat(64), size: bytes.byteLength }),
);
const fence = { lease: 'session/s', epoch: 1 };
let leases: ReturnType<typeof createMemoryLeaseStore>;
let trees: FileTrees;
beforeEach(() => {
  leases = createMemoryLeaseStore();
  put.mockClear();
  trees = new FileTrees({
    store: createMemoryEventStore({ leases }),
    blobs: {
      put,
      read: () => Promise.reject(new Error('unused')),
      erasedOf: () => Promise.resolve(new Set()),
    },
    snapshots: { read: () => Promise.resolve(null), write: () => Promise.resolve() },
    ids: { next: randomUUID },
  } as unknown as FileTreesDeps);
});

const writes = (count: number) => (tree: FileTree) => ({
  events: decideFiles(
    tree,
    Array.from({ length: count }, (_, nth) => ({
      ...{ op: 'write' as const, path: `d/${nth}`, digest: 'b'.repeat(64), size: 1 },
    })),
    { at: '2026-11-23T00:00:00.000Z', cause: { actor: 'local' }, limits: LIMITS as never },
  ),
});

describe('a change of a tree with facts of another stream', () => {
  it('is appended by the caller that records both', async () => {
    const append = jest.fn(() => Promise.resolve(true));
    await trees.commit('default', TREE, writes(2), { append, fence: () => fence });
    expect(append).toHaveBeenCalledTimes(1);
  });

  it('is appended alone, under the lease, if it has as many events as an append takes', async () => {
    const append = jest.fn(() => Promise.resolve(true));
    const recorder = { append, fence: () => fence };
    const commit = () => trees.commit('default', TREE, writes(1_000), recorder);
    await expect(commit()).rejects.toMatchObject({ code: 'LOG.FENCED' });
    await leases.acquire('default', fence.lease, 'spec', 60_000);
    const { result } = await commit();
    expect([append.mock.calls.length, result?.outcome]).toEqual([0, 'appended']);
    expect((await trees.read('default', TREE)).files.size).toBe(1_000);
  });
});

describe('bytes for an append', () => {
  it('travel with it while there is room, and are stored before it otherwise', async () => {
    const bytes = Buffer.alloc(200_000);
    expect((await trees.stageBytes('default', bytes)).blob).not.toBeNull();
    expect((await trees.stageBytes('default', bytes, bytes.byteLength)).blob).not.toBeNull();
    expect(put).not.toHaveBeenCalled();
    expect((await trees.stageBytes('default', bytes, bytes.byteLength - 1)).blob).toBeNull();
    expect((await trees.stageBytes('default', Buffer.alloc(APPENDED_BYTES))).blob).toBeNull();
    expect(put).toHaveBeenCalledTimes(2);
  });
});
