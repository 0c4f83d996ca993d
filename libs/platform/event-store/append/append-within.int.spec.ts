import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type pg from 'pg';
import { createPool, inTransaction } from '@antiphon/database';
import { createPostgresEventStore, type EventStore, type EventStorePg } from '@antiphon/event-store';
import { createTestDatabase, freshStream, type TestDatabase, toStream } from '@antiphon/testing';
import { APPEND_ARGUMENT_NAMES } from './append-batch.js';

const workspace = 'default';

describe('appendWithin', () => {
  let database: TestDatabase;
  let pool: pg.Pool;
  let store: EventStore & EventStorePg;
  beforeAll(async () => {
    database = await createTestDatabase();
    const admin = createPool({ url: database.url, applicationName: 'spec' });
    await admin.query(`create table balances (key text primary key, reserved bigint not null)`);
    await admin.query(`insert into balances select 'scope-' || n, 0 from generate_series(1, 6) n`);
    await admin.query('grant select, update on balances to antiphon_metering');
    await admin.end();
    pool = createPool({ url: database.urlFor('metering'), applicationName: 'spec', max: 6 });
    store = createPostgresEventStore(pool);
  }, 60_000);
  afterAll(async () => {
    await store.close();
    await pool.end();
    await database.drop();
  }, 60_000);
  const one = (streamId = freshStream('budget'), expected: number | 'any' = 0) => ({
    workspace,
    streams: [toStream(streamId, expected)],
  });

  it('passes every argument that antiphon_append declares, in the declared order', async () => {
    const { rows } = await pool.query<{ names: string[] }>(
      `select proargnames[1:pronargs] as names from pg_proc where proname = 'antiphon_append'`,
    );
    expect(rows).toEqual([{ names: APPEND_ARGUMENT_NAMES }]);
  });

  it('returns an outcome per request, and commits or rolls back with its caller', async () => {
    const committed = one();
    const outcomes = await inTransaction(pool, (client) =>
      store.appendWithin(client, [
        committed,
        one(undefined, 5),
        { workspace, streams: [toStream(freshStream(), 0)] },
      ]),
    );
    expect(outcomes.map((outcome) => (outcome.ok ? outcome.result.outcome : outcome.error.code))).toEqual([
      'appended',
      'LOG.VERSION_CONFLICT',
      'LOG.NOT_OWNER',
    ]);
    const lost = one();
    const failing = inTransaction(pool, async (client) => {
      await store.appendWithin(client, [lost]);
      throw new Error('the caller changes its mind');
    });
    await expect(failing).rejects.toThrow('the caller changes its mind');
    expect(await store.streamVersion(workspace, committed.streams[0]!.streamId)).toBe(1);
    expect(await store.streamVersion(workspace, lost.streams[0]!.streamId)).toBe(0);
    const positions = (await store.readLog({ after: 0, limit: 100 })).map(({ position }) => position);
    await store.append(one());
    expect(await store.headPosition()).toBe((positions.at(-1) ?? 0) + 1);
  });

  it('blocks other appends only until the timeout of a caller that is stopped before its commit', async () => {
    const url = database.urlFor('metering');
    const stopped = createPool({ url, applicationName: 'spec-stopped', max: 1, idleInTransactionMs: 200 });
    const lost = one();
    const locked = Promise.withResolvers<void>();
    const awake = Promise.withResolvers<void>();
    const sleeping = inTransaction(stopped, async (client) => {
      await store.appendWithin(client, [lost]);
      locked.resolve();
      await awake.promise;
    });
    sleeping.catch(() => undefined);
    await locked.promise;
    const next = one();
    await store.append(next);
    awake.resolve();
    await expect(sleeping).rejects.toMatchObject({ code: 'LOG.UNAVAILABLE' });
    const versions = [lost, next].map(({ streams }) =>
      store.streamVersion(workspace, streams[0]?.streamId ?? ''),
    );
    expect(await Promise.all(versions)).toEqual([0, 1]);
    await stopped.end();
  });

  it('returns duplicate for a repeated request without failing the transaction', async () => {
    const request = one();
    await store.append(request);
    const outcomes = await inTransaction(pool, (client) => store.appendWithin(client, [request, one()]));
    expect(outcomes.map((outcome) => outcome.ok && outcome.result.outcome)).toEqual([
      'duplicate',
      'appended',
    ]);
  });

  it('rejects a second call in a transaction, other isolation levels and shared streams', async () => {
    const twice = inTransaction(pool, async (client) => {
      await store.appendWithin(client, [one()]);
      await store.appendWithin(client, [one()]);
    });
    await expect(twice).rejects.toMatchObject({ kind: 'bug', code: 'DATABASE.ERROR' });
    const frozen = inTransaction(pool, async (client) => {
      await client.query('set transaction isolation level repeatable read');
      await store.appendWithin(client, [one()]);
    });
    await expect(frozen).rejects.toMatchObject({ kind: 'bug' });
    const shared = one('budget-shared', 'any');
    await expect(
      inTransaction(pool, (client) => store.appendWithin(client, [shared, one('budget-shared', 'any')])),
    ).rejects.toMatchObject({
      code: 'LOG.INVALID',
    });
    expect(await inTransaction(pool, (client) => store.appendWithin(client, []))).toEqual([]);
  });

  /** Imitates metering's admission: locks balance rows in key order, decides, appends last. */
  const admit = (keys: readonly string[], count: number): Promise<unknown> =>
    inTransaction(pool, async (client) => {
      await client.query('select key from balances where key = any ($1) order by key for update', [keys]);
      await client.query('update balances set reserved = reserved + $2 where key = any ($1)', [keys, count]);
      return store.appendWithin(
        client,
        Array.from({ length: count }, () => one()),
      );
    });

  it('never deadlocks with other admissions and plain appends', async () => {
    const before = await store.headPosition();
    const work: Promise<unknown>[] = [];
    for (let n = 0; n < 60; n++) {
      const keys = [n % 6, (n * 5 + 1) % 6, (n * 3 + 2) % 6].map((key) => `scope-${key + 1}`);
      work.push(admit(keys, 1 + (n % 4)), store.append(one()));
    }
    await Promise.all(work);
    const written = Array.from({ length: 60 }, (_, n) => 2 + (n % 4)).reduce((sum, count) => sum + count, 0);
    const positions = (await store.readLog({ after: before, limit: 1_000 })).map(({ position }) => position);
    expect(positions).toEqual(Array.from({ length: written }, (_, index) => before + index + 1));
  });
});
