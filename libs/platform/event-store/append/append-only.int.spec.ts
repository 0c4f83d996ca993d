import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import pg from 'pg';
import { createPool } from '@antiphon/database';
import {
  createPostgresEventStore,
  type EventStore,
  type EventStorePg,
  verifyChain,
} from '@antiphon/event-store';
import {
  createTestDatabase,
  DATABASE_ROLES,
  freshStream,
  type TestDatabase,
  toStream,
} from '@antiphon/testing';

const WRITES = [
  `insert into events select position + 1000, workspace, category, stream_id, stream_version + 1000, gen_random_uuid(), type,
    schema_version, data, metadata, recorded_at, hash from events limit 1`,
  `update events set data = '{}'`,
  `delete from events`,
  `truncate events`,
];

describe('the append-only log', () => {
  let database: TestDatabase;
  let pool: pg.Pool;
  let admin: pg.Client;
  let store: EventStore & EventStorePg;
  const streamId = freshStream();
  beforeAll(async () => {
    database = await createTestDatabase();
    pool = createPool({ url: database.urlFor('agent'), applicationName: 'spec' });
    store = createPostgresEventStore(pool);
    admin = new pg.Client({ connectionString: database.url });
    await admin.connect();
    await store.append({ workspace: 'default', streams: [toStream(streamId, 0, 3)] });
  }, 60_000);
  afterAll(async () => {
    await admin.end();
    await pool.end();
    await database.drop();
  }, 60_000);

  it.each(DATABASE_ROLES)('denies the role of %s every write outside antiphon_append', async (role) => {
    const client = new pg.Client({ connectionString: database.urlFor(role) });
    await client.connect();
    const guarded = [
      ...WRITES,
      `update stream_heads set version = 0`,
      `update log_head set base_position = 9`,
      `delete from category_owners`,
      `delete from leases`,
    ];
    for (const write of guarded) await expect(client.query(write)).rejects.toMatchObject({ code: '42501' });
    await client.end();
  });

  it('rejects updates, deletes and truncates of its owner by trigger', async () => {
    for (const write of WRITES.slice(1))
      await expect(admin.query(write)).rejects.toThrow('the log is append-only');
  });

  it('forbids the reader to append', async () => {
    const reader = createPool({ url: database.urlFor('reader'), applicationName: 'spec' });
    const append = createPostgresEventStore(reader).append({
      workspace: 'default',
      streams: [toStream(freshStream(), 0)],
    });
    await expect(append).rejects.toMatchObject({ code: 'DATABASE.FORBIDDEN' });
    await reader.end();
  });

  it('shows a change by a superuser who disabled the triggers', async () => {
    await admin.query('set session_replication_role = replica');
    await admin.query(
      `update events set data = '{"text":"forged"}' where stream_id = $1 and stream_version = 2`,
      [streamId],
    );
    await admin.query('set session_replication_role = origin');
    const verdict = verifyChain(await store.readStream('default', streamId));
    expect(verdict).toMatchObject({
      isIntact: false,
      event: { streamVersion: 2 },
      reason: 'its content does not have its hash',
    });
  });
});
