import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type pg from 'pg';
import { BlobStore, createPool } from '@antiphon/database';
import { createPostgresEventStore, type EventStore, type EventStorePg } from '@antiphon/event-store';
import { createTestDatabase, freshStream, type TestDatabase, toStream } from '@antiphon/testing';

const blobOf = (text: string) => {
  const body = Buffer.from(text);
  return { digest: createHash('sha256').update(body).digest('hex'), body };
};

describe('Bytes of an append', () => {
  let database: TestDatabase;
  let pool: pg.Pool;
  let store: EventStore & EventStorePg;
  let blobs: BlobStore;
  beforeAll(async () => {
    database = await createTestDatabase();
    pool = createPool({ url: database.urlFor('agent'), applicationName: 'spec', max: 4 });
    store = createPostgresEventStore(pool);
    blobs = new BlobStore(pool);
  }, 60_000);
  afterAll(async () => {
    await store.close();
    await pool.end();
    await database.drop();
  }, 60_000);

  const append = (workspace: string, ...texts: string[]) =>
    store.append({
      workspace,
      streams: [toStream(freshStream('session'), 0)],
      blobs: texts.map(blobOf),
    });
  const read = async (workspace: string, text: string): Promise<string> =>
    Buffer.from(await blobs.read(workspace, blobOf(text).digest)).toString('utf8');

  it('are stored with it, also of several requests of one batch with the same bytes', async () => {
    await Promise.all([
      append('w1', 'one', '', 'two, which is longer'),
      append('w1', 'one'),
      append('w2', 'one', 'three'),
    ]);
    for (const text of ['one', '', 'two, which is longer']) expect(await read('w1', text)).toBe(text);
    for (const text of ['one', 'three']) expect(await read('w2', text)).toBe(text);
    await expect(read('w1', 'three')).rejects.toMatchObject({ code: 'FILE.NO_BYTES' });
  });

  it('do not bring erased bytes back', async () => {
    await append('w1', 'secret');
    await blobs.erase('w1', [blobOf('secret').digest]);
    await append('w1', 'secret');
    await expect(read('w1', 'secret')).rejects.toMatchObject({ code: 'FILE.ERASED' });
  });

  it('are refused for a service that owns no files, and without a digest', async () => {
    const other = createPool({ url: database.urlFor('metering'), applicationName: 'spec', max: 1 });
    const streams = [toStream(freshStream('budget'), 0)];
    const foreign = createPostgresEventStore(other);
    const refused = foreign.append({ workspace: 'w1', streams, blobs: [blobOf('x')] });
    await expect(refused).rejects.toMatchObject({ code: 'DATABASE.FORBIDDEN' });
    await foreign.close();
    await other.end();
    const unnamed = { workspace: 'w1', streams, blobs: [{ digest: 'x', body: Buffer.from('x') }] };
    await expect(store.append(unnamed)).rejects.toMatchObject({ code: 'LOG.INVALID' });
  });
});
