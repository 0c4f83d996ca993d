import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type pg from 'pg';
import { createPool } from '@antiphon/database';
import { createLeaseStore, createPostgresEventStore } from '@antiphon/event-store';
import type { AppendRequest, EventStore, EventStorePg } from '@antiphon/event-store';
import { createTestDatabase, freshStream, newEvent, type TestDatabase, toStream } from '@antiphon/testing';
import { verifyChain } from '../integrity/event-hash.js';

const workspace = 'default';

/** Appends of one event, in `antiphon_append_event` and in `antiphon_append`. */
describe('an append of one event', () => {
  let database: TestDatabase;
  let pool: pg.Pool;
  let store: EventStore & EventStorePg;
  beforeAll(async () => {
    database = await createTestDatabase();
    pool = createPool({ url: database.urlFor('agent'), applicationName: 'spec' });
    store = createPostgresEventStore(pool);
  }, 60_000);
  afterAll(async () => {
    await store.close();
    await pool.end();
    await database.drop();
  }, 60_000);

  const begin = async (): Promise<string> => {
    const streamId = freshStream();
    await store.append({ workspace, streams: [toStream(streamId, 0)] });
    return streamId;
  };
  const acquire = async (lease: string) => {
    const leases = createLeaseStore(pool);
    const held = await leases.acquire(workspace, lease, 'one', 60_000);
    if (!held.acquired) throw new Error(`${lease} is held`);
    return { lease, epoch: held.lease.epoch };
  };
  const headOf = async (): Promise<number> => store.headPosition();

  it('has the chain, the position and the version of any other', async () => {
    const streamId = await begin();
    const fence = await acquire(`agent/session/${streamId}`);
    const head = await headOf();
    const data = { text: 'ä "quoted" \\ text', list: [1, 2.5, null], deep: { b: 1, a: true } };
    const stream = { streamId, expectedVersion: 1, events: [newEvent(data)] };
    const first = await store.append({ workspace, streams: [stream], fence });
    expect(first).toEqual({
      ...{ outcome: 'appended', versions: [2], firstPosition: head + 1, lastPosition: head + 1 },
    });
    const second = await store.append({ workspace, streams: [toStream(streamId, 2)] });
    expect(second).toMatchObject({ versions: [3], firstPosition: head + 2 });
    const events = await store.readStream(workspace, streamId);
    expect(events.map(({ position }) => position).slice(1)).toEqual([head + 1, head + 2]);
    expect(events[1]).toMatchObject({ category: 'session', data, eventId: stream.events[0]?.eventId });
    expect(verifyChain(events)).toMatchObject({ isIntact: true, version: 3 });
    // The general way continues the chain.
    await store.append({ workspace, streams: [toStream(streamId, 3, 2)] });
    expect(verifyChain(await store.readStream(workspace, streamId))).toMatchObject({ isIntact: true });
  });

  const refusals: readonly [string, string, (streamId: string) => Promise<AppendRequest> | AppendRequest][] =
    [
      ['a version that is over', 'LOG.VERSION_CONFLICT', (id) => ({ workspace, streams: [toStream(id, 2)] })],
      [
        'another category',
        'LOG.NOT_OWNER',
        () => ({ workspace, streams: [toStream(freshStream('budget'), 1)] }),
      ],
      [
        'a lease of another epoch',
        'LOG.FENCED',
        async (id) => {
          const { lease, epoch } = await acquire(`agent/session/${id}`);
          return { workspace, streams: [toStream(id, 1)], fence: { lease, epoch: epoch + 1 } };
        },
      ],
      [
        'a lease of another workspace',
        'LOG.FENCED',
        async (id) => {
          const fence = await acquire(`agent/session/${id}`);
          return { workspace, streams: [toStream(id, 1)], fence: { ...fence, workspace: 'other' } };
        },
      ],
      [
        'an event id with other content',
        'LOG.EVENT_ID_CONFLICT',
        async (id) => {
          const event = newEvent();
          const other = await begin();
          await store.append({
            workspace,
            streams: [{ streamId: other, expectedVersion: 1, events: [event] }],
          });
          const changed = { ...event, data: { text: randomUUID() } };
          return { workspace, streams: [{ streamId: id, expectedVersion: 1, events: [changed] }] };
        },
      ],
    ];
  it.each(refusals)('writes nothing for %s', async (_name, code, make) => {
    const streamId = await begin();
    const request = await make(streamId);
    const head = await headOf();
    await expect(store.append(request)).rejects.toMatchObject({ code });
    expect(await headOf()).toBe(head);
    const next = await store.append({ workspace, streams: [toStream(streamId, 1)] });
    expect(next).toMatchObject({ versions: [2], firstPosition: head + 1 });
  });

  it('returns the first result of a repeat', async () => {
    const streamId = await begin();
    const request = { workspace, streams: [toStream(streamId, 1)] };
    const first = await store.append(request);
    expect(await store.append(request)).toMatchObject({
      ...{ outcome: 'duplicate', versions: first.versions, firstPosition: first.firstPosition },
    });
  });

  it('returns null for a second append in a transaction, and for another isolation level', async () => {
    const streamId = await begin();
    const sql = `select antiphon_append_event('default', $1, $2, $3, 'Noted', 1, '{}', '{}', null, null, null) as position`;
    const call = async (client: pg.ClientBase, version: number): Promise<string | null | undefined> =>
      (await client.query<{ position: string | null }>(sql, [streamId, version, randomUUID()])).rows[0]
        ?.position;
    const client = await pool.connect();
    await client.query('begin');
    expect(await call(client, 1)).not.toBeNull();
    expect(await call(client, 2)).toBeNull();
    await client.query('rollback');
    await client.query('begin isolation level serializable');
    expect(await call(client, 1)).toBeNull();
    await client.query('rollback');
    client.release();
  });

  it('refuses the role of a reader', async () => {
    const other = createPool({ url: database.urlFor('reader'), applicationName: 'spec' });
    const call = `select antiphon_append_event('default', 'session-a', 1, '${randomUUID()}', 'Noted', 1, '{}', '{}', null, null, null)`;
    await expect(other.query(call)).rejects.toMatchObject({ code: '42501' });
    await other.end();
  });

  it('writes nothing for a service to a stream of another one', async () => {
    const streamId = await begin();
    const other = createPool({ url: database.urlFor('sandbox'), applicationName: 'spec' });
    const sql = `select antiphon_append_event($1, $2, 1, $3, 'Noted', 1, '{}', '{}', null, null, null) as position`;
    const head = await headOf();
    const { rows } = await other.query<{ position: string | null }>(sql, [workspace, streamId, randomUUID()]);
    expect([rows, await headOf()]).toEqual([[{ position: null }], head]);
    await other.end();
    // The same append succeeds for the owner of the category.
    const own = await pool.query<{ position: string | null }>(sql, [workspace, streamId, randomUUID()]);
    expect(own.rows).toEqual([{ position: String(head + 1) }]);
  });
});
