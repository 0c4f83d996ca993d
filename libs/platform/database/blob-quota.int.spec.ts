import { randomBytes, randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createPostgresEventStore } from '@antiphon/event-store';
import type { EventStore, EventStorePg } from '@antiphon/event-store';
import { createTestDatabase } from '@antiphon/testing';
import type { TestDatabase } from '@antiphon/testing';
import type pg from 'pg';
import { BlobStore } from './blob-store.js';
import { createPool } from './pool.js';

const LIMIT = 10_000;

let database: TestDatabase;
let pools: pg.Pool[];
let store: EventStore & EventStorePg;
let blobs: BlobStore;

beforeAll(async () => {
  database = await createTestDatabase();
  pools = (['agent', 'gateway'] as const).map((role) =>
    createPool({ url: database.urlFor(role), applicationName: 'spec' }),
  );
  store = createPostgresEventStore(pools[0]!);
  blobs = new BlobStore(pools[1]!, LIMIT);
});
afterAll(async () => {
  await store?.close();
  await Promise.all(pools?.map((pool) => pool.end()) ?? []);
  await database?.drop();
});

const cite = (workspace: string, digest: string): Promise<unknown> => {
  const data = { path: `${digest}.md`, digest, before: null, size: 1, cause: { actor: 'spec' } };
  const event = { eventId: randomUUID(), type: 'FileWritten', schemaVersion: 1, data };
  const events = [{ ...event, metadata: { correlationId: 'spec', service: 'agent' } }];
  const streams = [{ streamId: `file-${randomUUID()}`, expectedVersion: 0, events }];
  return store.append({ workspace, streams });
};

describe('bytes that no fact cites', () => {
  // @shows review2-9-bytes-without-a-fact
  it('have a quota in each workspace, of which cited bytes take nothing', async () => {
    const workspace = 'acme';
    for (let n = 0; n < 25; n++) {
      const { digest } = await blobs.put(workspace, randomBytes(1_000));
      await cite(workspace, digest);
    }
    for (let n = 0; n < 10; n++) await blobs.put(workspace, randomBytes(1_000));
    await expect(blobs.put(workspace, randomBytes(1_000))).rejects.toMatchObject({
      kind: 'exhausted',
      code: 'FILE.QUOTA',
      data: { quota: 'max_uncited_bytes', limit: LIMIT },
    });
    await expect(blobs.put('globex', randomBytes(1_000))).resolves.toMatchObject({ size: 1_000 });
    expect(await new BlobStore(pools[0]!).sweep(new Date(Date.now() + 60_000).toISOString())).toBe(11);
    await blobs.put(workspace, randomBytes(1_000));
  });

  it('refuse one write that is larger than the quota', async () => {
    const put = blobs.put('large', randomBytes(LIMIT + 1));
    await expect(put).rejects.toMatchObject({ code: 'FILE.QUOTA' });
  });
});
