import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { createHash } from 'node:crypto';
import pg from 'pg';
import { createTestDatabase } from '@antiphon/testing';
import type { TestDatabase } from '@antiphon/testing';
import { BlobStore } from './blob-store.js';
import { createPool } from './pool.js';

let database: TestDatabase;
let pool: pg.Pool;

beforeEach(async () => {
  database = await createTestDatabase();
  pool = createPool({ url: database.urlFor('agent'), applicationName: 'spec', max: 1, workspace: 'default' });
});
afterEach(async () => {
  await pool.end();
  await database.drop();
});

const digestOf = (text: string): string => createHash('sha256').update(text).digest('hex');
const refused = { code: '23514', message: expect.stringContaining('are not those of the digest') };

describe('bytes under the digest of others', () => {
  it('are refused by the function of appends', async () => {
    const put = (digest: string, size: number) =>
      pool.query('select antiphon_put_blobs($1, $2, $3, $4)', [
        ['default'],
        [digest],
        [size],
        Buffer.from('evil'),
      ]);
    await expect(put(digestOf('good'), 4)).rejects.toMatchObject(refused);
    await expect(put(digestOf('evil'), 3)).rejects.toMatchObject(refused);
    await put(digestOf('evil'), 4);
  });

  it('are refused to the role of the gateway', async () => {
    const gateway = createPool({
      ...{ url: database.urlFor('gateway'), applicationName: 'spec', max: 1, workspace: 'default' },
    });
    const insert = (digest: string, body: string) =>
      gateway.query(
        `insert into file_blobs (workspace, digest, size, body, written_at)
         values ('default', $1, $2, $3, now()) on conflict (workspace, digest) do update set written_at = now()`,
        [digest, body.length, Buffer.from(body)],
      );
    await expect(insert(digestOf('good'), 'evil')).rejects.toMatchObject(refused);
    await insert(digestOf('good'), 'good');
    await expect(
      gateway.query('update file_blobs set body = $1', [Buffer.from('evil')]),
    ).rejects.toMatchObject(refused);
    await gateway.end();
  });

  it('are not returned where the owner of the database wrote them', async () => {
    const store = new BlobStore(pool);
    const { digest } = await store.put('default', Buffer.from('good'));
    const admin = new pg.Client({ connectionString: database.url });
    await admin.connect();
    await admin.query(`set session_replication_role = 'replica'`);
    await admin.query('update file_blobs set body = $1', [Buffer.from('evil')]);
    await admin.end();
    const changed = { code: 'FILE.BYTES_CHANGED' };
    await expect(store.read('default', digest)).rejects.toMatchObject(changed);
    await expect(store.readMany('default', [digest])).rejects.toMatchObject(changed);
  });

  it('may be erased', async () => {
    const store = new BlobStore(pool);
    const { digest } = await store.put('default', Buffer.from('good'));
    await store.erase('default', [digest]);
    await expect(store.read('default', digest)).rejects.toMatchObject({ code: 'FILE.ERASED' });
  });
});
