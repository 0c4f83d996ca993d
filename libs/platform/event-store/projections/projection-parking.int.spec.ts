import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { createPool } from '@antiphon/database';
import { transient } from '@antiphon/kernel';
import { silentLogger } from '@antiphon/observability';
import {
  compareProjection,
  createPostgresEventStore,
  type EventStore,
  type EventStorePg,
  type HandleEvents,
  listParked,
  type ProjectionDefinition,
  replayParked,
  replayParkedStreams,
  type RunningProjection,
  runProjection,
} from '@antiphon/event-store';
import { createTestDatabase, freshStream, newEvent, type TestDatabase, until } from '@antiphon/testing';

const COUNT_SQL = `insert into spec_counts as c (stream_id, events, last)
  select stream_id, count(*), max(position) from unnest($1::text[], $2::bigint[]) as e (stream_id, position) group by 1
  on conflict (stream_id) do update set events = c.events + excluded.events, last = excluded.last`;

const count: HandleEvents = async (client, events) => {
  const values = [events.map(({ streamId }) => streamId), events.map(({ position }) => position)];
  await client.query({ name: 'spec_count', text: COUNT_SQL, values });
};

describe('an event that a projection cannot apply', () => {
  let database: TestDatabase;
  let admin: pg.Pool;
  let pool: pg.Pool;
  let store: EventStore & EventStorePg;
  let counts: ProjectionDefinition;
  let projection: RunningProjection | undefined;
  /** Number of attempts of each marked event, and the outcome of an attempt. */
  let tries: Map<unknown, number>;
  let outcome: (mark: unknown, tries: number) => Error | undefined;

  const picky: HandleEvents = async (client, events) => {
    for (const { data } of events) {
      const { mark } = data;
      if (mark === undefined) continue;
      // A failed batch is applied again one by one, which counts as the same attempt.
      if (events.length === 1) tries.set(mark, (tries.get(mark) ?? 0) + 1);
      const error = outcome(mark, tries.get(mark) ?? 0);
      if (error) throw error;
    }
    await count(client, events);
  };
  const start = (delays: readonly number[] = [20, 20, 20, 20]): RunningProjection =>
    (projection = runProjection({
      ...counts,
      pool,
      logger: silentLogger,
      pollMs: 10,
      retryDelaysMs: delays,
    }));
  const append = (streamId: string, ...events: Record<string, string>[]) =>
    store.append({
      workspace: 'default',
      streams: [{ streamId, expectedVersion: 'any', events: events.map((data) => newEvent(data)) }],
    });
  const eventsOf = async (streamId: string): Promise<number> => {
    const query = 'select events from spec_counts where stream_id = $1';
    const { rows } = await pool.query<{ events: string }>(query, [streamId]);
    return Number(rows[0]?.events ?? 0);
  };
  const parked = () => listParked(pool, { projection: counts.name });
  const parkedForGood = () => until(async () => (await parked()).some(({ retryAt }) => retryAt === null));

  beforeAll(async () => {
    database = await createTestDatabase();
    admin = createPool({ url: database.url, applicationName: 'spec' });
    await admin.query(`create table spec_counts (stream_id text primary key, events bigint not null, last bigint not null);
      grant select on spec_counts to antiphon_reader; grant select, insert, update on spec_counts to antiphon_agent`);
    pool = createPool({ url: database.urlFor('agent'), applicationName: 'spec', max: 8 });
    store = createPostgresEventStore(pool);
  }, 60_000);
  afterAll(async () => {
    await store.close();
    await Promise.all([pool.end(), admin.end()]);
    await database.drop();
  });
  beforeEach(async () => {
    tries = new Map();
    outcome = (mark, times) => (mark === 'poison' ? new Error(`try ${times}: it is poison`) : undefined);
    await admin.query('delete from spec_counts');
    counts = {
      ...{ name: `agent-spec-${randomUUID()}`, service: 'agent', categories: ['session'] },
      ...{ tables: [{ name: 'spec_counts' }], handle: picky },
    };
  });
  afterEach(() => projection?.stop());

  it('is tried five times, then stays parked with the reason while other streams continue', async () => {
    const [bad, good] = [freshStream(), freshStream()];
    start();
    const { firstPosition: first } = await append(bad, {}, {}, { mark: 'poison' }, {});
    for (let n = 0; n < 20; n++) await append(good, {});
    await until(async () => (await eventsOf(good)) === 20);
    expect(await eventsOf(bad)).toBe(2);
    await parkedForGood();
    const { lastPosition } = await append(bad, {});
    await projection?.waitForPosition(lastPosition);
    expect(await parked()).toEqual([
      expect.objectContaining({
        ...{ projection: counts.name, workspace: 'default', streamId: bad, type: 'Noted', tries: 5 },
        ...{ position: first + 2, reason: 'Error: try 5: it is poison', retryAt: null },
      }),
    ]);
    expect(tries.get('poison')).toBe(5);
    expect(await eventsOf(bad)).toBe(2);
  });

  it('is applied with all later events of its stream when a retry succeeds', async () => {
    const [bad, good] = [freshStream(), freshStream()];
    outcome = (mark, times) => (mark === 'weak' && times < 4 ? new Error('not yet') : undefined);
    start();
    await append(bad, {}, { mark: 'weak' }, {});
    await append(good, {});
    await until(async () => (await eventsOf(bad)) === 3);
    expect(await parked()).toEqual([]);
    expect(tries.get('weak')).toBe(4);
    expect((await compareProjection(admin, counts)).differing).toBe(0);
  });

  it('is retried by a replay that waits for the checkpoint lock of a busy projection', async () => {
    const bad = freshStream();
    start([]);
    await append(bad, {}, { mark: 'poison' });
    await parkedForGood();
    const busy = await pool.connect();
    await busy.query('begin');
    await busy.query('select from projection_checkpoints where name = $1 for update', [counts.name]);
    const replayed = replayParked({ ...counts, pool, retryDelaysMs: [] }, { streamId: bad });
    await until(async () => {
      const { rows } = await admin.query(`select from pg_locks where not granted`);
      return rows.length > 0;
    });
    await busy.query('commit');
    busy.release();
    expect(await replayed).toMatchObject({ replayed: 0, stillParked: [{ streamId: bad, tries: 2 }] });
  });

  it('is replayed after the fix, and the rows then equal those of a rebuild', async () => {
    const [bad, worse, good] = [freshStream(), freshStream(), freshStream()];
    outcome = (mark) => (mark === 'toxic' ? new Error('toxic') : undefined);
    start([]);
    await append(bad, {}, { mark: 'toxic' }, {}, { mark: 'later' });
    await append(worse, { mark: 'toxic' });
    await append(good, {});
    await until(async () => (await parked()).length === 2);
    outcome = (mark) => (mark === 'later' ? new Error('another one') : undefined);
    const source = { ...counts, pool, retryDelaysMs: [] };
    expect(await replayParked(source, { streamId: bad })).toMatchObject({
      replayed: 0,
      stillParked: [{ streamId: bad, tries: 1, willRetry: false }],
    });
    // The events before the other one stay applied.
    expect(await eventsOf(bad)).toBe(3);
    expect((await parked()).find(({ streamId }) => streamId === bad)?.reason).toBe('Error: another one');
    outcome = () => undefined;
    expect(await replayParked(source, {})).toEqual({ replayed: 2, stillParked: [] });
    const { lastPosition } = await append(bad, {});
    await projection?.waitForPosition(lastPosition);
    expect(await eventsOf(bad)).toBe(5);
    expect(await parked()).toEqual([]);
    expect((await compareProjection(admin, counts)).differing).toBe(0);
  });

  it('is replayed for one workspace only, and what fails again is named with its reason', async () => {
    const [own, foreign] = [freshStream(), freshStream()];
    outcome = (mark) => (mark === 'own' ? new Error('still broken') : undefined);
    start([]);
    await append(own, { mark: 'own' });
    await store.append({
      workspace: 'acme',
      streams: [{ streamId: foreign, expectedVersion: 'any', events: [newEvent({ mark: 'own' })] }],
    });
    await until(async () => (await parked()).length === 2);
    const replay = () => replayParkedStreams(pool, [counts], { workspace: 'acme', projection: counts.name });
    expect(await replay()).toEqual({
      replayed: 0,
      failed: [
        {
          projection: counts.name,
          streamId: foreign,
          reason: 'Error: still broken',
        },
      ],
    });
    outcome = () => undefined;
    expect(await replay()).toEqual({ replayed: 1, failed: [] });
    expect((await parked()).map(({ streamId }) => streamId)).toEqual([own]);
    await expect(
      replayParkedStreams(pool, [counts], { workspace: 'acme', projection: 'agent-nonsense' }),
    ).rejects.toMatchObject({ code: 'LOG.PROJECTION_NOT_FOUND' });
  });

  it('is not parked when only a dependency is unavailable', async () => {
    const stream = freshStream();
    let away = true;
    outcome = (mark) => (away && mark === 'x' ? transient('TEST.AWAY', 'not now') : undefined);
    start();
    await append(stream, { mark: 'x' });
    await until(() => projection?.status().isFailing === true);
    expect(await parked()).toEqual([]);
    away = false;
    await until(async () => (await eventsOf(stream)) === 1);
  });
});
