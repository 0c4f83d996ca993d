import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { createPool } from '@antiphon/database';
import { createLeaseStore, createPostgresEventStore, verifyChain } from '@antiphon/event-store';
import type { EventStore, EventStorePg, NewEvent } from '@antiphon/event-store';
import { createTestDatabase, type TestDatabase } from '@antiphon/testing';

const event = (data: NewEvent['data'] = { n: 1 }): NewEvent => ({
  eventId: randomUUID(),
  type: 'Noted',
  schemaVersion: 1,
  data,
  metadata: { correlationId: 'c', service: 'agent' },
});

describe('PostgreSQL event store', () => {
  let database: TestDatabase;
  let pool: pg.Pool;
  let store: EventStore & EventStorePg;
  beforeAll(async () => {
    database = await createTestDatabase();
    pool = createPool({ url: database.urlFor('agent'), applicationName: 'spec' });
    store = createPostgresEventStore(pool);
  });
  afterAll(async () => {
    await store.close();
    await pool.end();
    await database.drop();
  });

  it('appends and reads back a whole chain', async () => {
    const streamId = `session-${randomUUID()}`;
    const a = await store.append({
      workspace: 'default',
      streams: [
        { streamId, expectedVersion: 0, events: [event(), event({ b: 1e21, a: [1.5, 'é\u2028"\\u0000'] })] },
      ],
    });
    expect(a.versions).toEqual([2]);
    const lease = await createLeaseStore(pool).acquire('default', 'session/1', 'me', 5000);
    if (!lease.acquired) throw new Error('x');
    await store.append({
      workspace: 'default',
      fence: { lease: 'session/1', epoch: lease.lease.epoch },
      streams: [{ streamId, expectedVersion: 2, events: [event()] }],
    });
    await expect(
      store.append({
        workspace: 'default',
        fence: { lease: 'session/1', epoch: 7 },
        streams: [{ streamId, expectedVersion: 3, events: [event()] }],
      }),
    ).rejects.toMatchObject({ code: 'LOG.FENCED' });
    await expect(
      store.append({ workspace: 'default', streams: [{ streamId, expectedVersion: 2, events: [event()] }] }),
    ).rejects.toMatchObject({ code: 'LOG.VERSION_CONFLICT', data: { actual: 3 } });
    await expect(
      store.append({
        workspace: 'default',
        streams: [{ streamId: 'budget-1', expectedVersion: 0, events: [event()] }],
      }),
    ).rejects.toMatchObject({ code: 'LOG.NOT_OWNER' });
    const events = await store.readStream('default', streamId);
    expect(verifyChain(events)).toMatchObject({ whole: true, version: 3 });
  });
});
