import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { appendFile, copyFile, mkdtemp, rename, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type pg from 'pg';
import { ALL_WORKSPACES, createPool } from '@antiphon/database';
import { silentLogger } from '@antiphon/observability';
import {
  archiveEvents,
  compareProjection,
  compareProjections,
  createPostgresEventStore,
  type EventStore,
  type EventStorePg,
  type HandleEvents,
  listArchives,
  listProjections,
  type ProjectionDefinition,
  rebuildProjection,
  restoreArchive,
  type RunningProjection,
  runProjection,
} from '@antiphon/event-store';
import {
  createTestDatabase,
  freshStream,
  newEvent,
  type TestDatabase,
  toStream,
  until,
} from '@antiphon/testing';

const COUNT_SQL = `insert into spec_counts as c (stream_id, events, last)
  select stream_id, count(*), max(position) from unnest($1::text[], $2::bigint[]) as e (stream_id, position) group by 1
  on conflict (stream_id) do update set events = c.events + excluded.events, last = excluded.last`;

const count: HandleEvents = async (client, events) => {
  const poison = events.find(({ data }) => data['poison'] === true);
  if (poison) throw new Error('this event is poison');
  const values = [events.map(({ streamId }) => streamId), events.map(({ position }) => position)];
  await client.query({ name: 'spec_count', text: COUNT_SQL, values });
};

describe('a rebuild', () => {
  let database: TestDatabase;
  let admin: pg.Pool;
  let pool: pg.Pool;
  let store: EventStore & EventStorePg;
  let projection: RunningProjection;
  let counts: ProjectionDefinition;

  const start = (): RunningProjection =>
    runProjection({ ...counts, pool, logger: silentLogger, pollMs: 10, batchSize: 7 });
  const catchUp = async () => projection.waitForPosition(await store.headPosition());
  const append = (streamId = freshStream(), events = 1) =>
    store.append({ workspace: 'default', streams: [toStream(streamId, 'any', events)] });

  beforeAll(async () => {
    database = await createTestDatabase();
    admin = createPool({ url: database.url, applicationName: 'spec' });
    await admin.query(`create table spec_counts (stream_id text primary key, events bigint not null, last bigint not null);
      grant select on spec_counts to antiphon_reader; grant select, insert, update on spec_counts to antiphon_agent`);
    pool = createPool({
      ...{ url: database.urlFor('agent'), applicationName: 'spec', max: 8, workspace: ALL_WORKSPACES },
    });
    store = createPostgresEventStore(pool);
    for (let n = 0; n < 60; n++) await append(undefined, 1 + (n % 40));
  }, 60_000);
  afterAll(async () => {
    await store.close();
    await Promise.all([pool.end(), admin.end()]);
    await database.drop();
  });
  beforeEach(async () => {
    counts = {
      name: `agent-spec-${randomUUID()}`,
      service: 'agent',
      categories: ['session'],
      tables: [{ name: 'spec_counts' }],
      handle: count,
    };
    await admin.query('delete from spec_counts');
    projection = start();
    await catchUp();
  });
  afterEach(() => projection.stop());

  it('finds no differing row while the log grows', async () => {
    let growing = true;
    const load = async () => {
      for (let n = 0; growing && n < 500; n++) await append(`session-live-${n % 20}`, 3);
    };
    const writers = [load(), load()];
    const compared = [];
    try {
      for (let round = 0; round < 5; round++) compared.push(await compareProjection(admin, counts));
    } finally {
      growing = false;
      await Promise.all(writers);
    }
    await catchUp();
    expect(compared.map(({ differing }) => differing)).toEqual([0, 0, 0, 0, 0]);
    expect(compared.at(-1)!.position).toBeGreaterThan(compared[0]!.position);
    expect(compared.at(-1)!.rows).toBeGreaterThan(60);
    expect((await compareProjections(admin, [counts]))[0]).toMatchObject({
      differing: 0,
      position: await store.headPosition(),
    });
  });

  it('names missing, extra and changed rows and does not change them', async () => {
    const { rows } = await admin.query<{ stream_id: string }>('select stream_id from spec_counts order by 1');
    const [lost, changed] = rows.map(({ stream_id: id }) => id) as [string, string];
    await admin.query(`delete from spec_counts where stream_id = '${lost}'`);
    await admin.query(`update spec_counts set events = events + 1 where stream_id = '${changed}'`);
    await admin.query(`insert into spec_counts values ('session-zzz', 1, 1)`);
    const compared = await compareProjection(admin, counts);
    expect(compared.differing).toBe(3);
    expect(compared.first).toEqual([
      { table: 'spec_counts', key: { stream_id: lost }, kind: 'missing', columns: [] },
      { table: 'spec_counts', key: { stream_id: changed }, kind: 'other', columns: ['events'] },
      { table: 'spec_counts', key: { stream_id: 'session-zzz' }, kind: 'extra', columns: [] },
    ]);
    expect(await compareProjection(admin, counts)).toEqual(compared);
  });

  it('repairs the rows under live traffic, and readers see all repairs or none', async () => {
    const seen = new Set<string>();
    const total = async (): Promise<void> => {
      // At every read the rows must count exactly the events up to the checkpoint.
      const { rows } = await pool.query<{ consistent: boolean; rows: string }>(
        `select (select coalesce(sum(events), 0) from spec_counts) =
           (select count(*) from events where category = 'session' and position <= c.position) as consistent
         from projection_checkpoints c where name = $1`,
        [counts.name],
      );
      seen.add(String(rows[0]?.consistent));
    };
    let growing = true;
    const repeat = async (work: () => Promise<unknown>) => {
      for (let n = 0; growing && n < 500; n++) await work();
    };
    // A projection that lags behind the fold is moved to its position, which changes rows, too.
    const appendAndFollow = async (streamId?: string): Promise<void> => {
      await append(streamId, 2);
      await catchUp();
    };
    const writers = [repeat(() => appendAndFollow()), repeat(() => appendAndFollow('session-shared'))];
    const writing = writers.length;
    let spoiled: number | null = 0;
    let changed: number[] = [];
    try {
      ({ rowCount: spoiled } = await admin.query(
        `update spec_counts set events = events + 1 where stream_id <> 'session-shared'`,
      ));
      await total();
      expect([...seen]).toEqual(['false']);
      changed = [(await rebuildProjection(admin, counts)).changed];
      seen.clear();
      writers.push(repeat(total));
      for (let round = 0; round < 3; round++) changed.push((await rebuildProjection(admin, counts)).changed);
    } finally {
      growing = false;
      await Promise.all(writers);
    }
    // The row of each writer may lag at that moment, and is moved.
    const others = changed.map((count, round) => count - (round === 0 ? (spoiled ?? 0) : 0));
    expect(others.map((count) => count >= 0 && count <= writing)).toEqual([true, true, true, true]);
    expect(spoiled).toBeGreaterThan(writing);
    expect([...seen]).toEqual(['true']);
    await catchUp();
    expect((await compareProjection(admin, counts)).differing).toBe(0);
  });

  it('lets a projection continue after the log was restored', async () => {
    await admin.query('update log_head set epoch = epoch + 1');
    await append();
    await until(() => projection.status().isFailing);
    const [listed] = await listProjections(admin, [counts]);
    expect(listed).toMatchObject({ name: counts.name, stale: true, service: 'agent' });
    await rebuildProjection(admin, counts);
    await catchUp();
    await until(() => !projection.status().isFailing);
    expect((await listProjections(admin, [counts]))[0]).toMatchObject({ stale: false, lag: 0, parked: 0 });
    expect((await compareProjection(admin, counts)).differing).toBe(0);
  });

  it('parks the same streams as the live projection, and applies them after the fix', async () => {
    const bad = freshStream();
    await append(bad);
    await store.append({
      workspace: 'default',
      streams: [{ streamId: bad, expectedVersion: 'any', events: [newEvent({ poison: true })] }],
    });
    await append(bad);
    await catchUp();
    expect((await compareProjection(admin, counts)).differing).toBe(0);
    expect((await listProjections(admin, [counts]))[0]).toMatchObject({ parked: 1 });
    expect(await rebuildProjection(admin, counts)).toMatchObject({ parked: 1, changed: 0 });
    const { handle } = counts;
    const tolerant: HandleEvents = (client, events) =>
      handle(
        client,
        events.map((event) => ({ ...event, data: {} })),
      );
    const fixed = { ...counts, handle: tolerant };
    expect((await compareProjection(admin, fixed)).first).toEqual([
      expect.objectContaining({ key: { stream_id: bad }, kind: 'other' }),
    ]);
    expect(await rebuildProjection(admin, fixed)).toMatchObject({ parked: 0, changed: 1 });
    expect((await listProjections(admin, [counts]))[0]).toMatchObject({ parked: 0 });
  });

  it('rejects a handler that writes to a table outside its definition', async () => {
    const straying: HandleEvents = async (client, events) => {
      await count(client, events);
      await client.query(`delete from leases`);
    };
    await expect(compareProjection(admin, { ...counts, handle: straying })).rejects.toMatchObject({
      code: 'DATABASE.FORBIDDEN',
    });
  });

  describe('of a partly archived log', () => {
    const pairs = [{ begins: ['Began'], ends: ['Ended'] }];
    const rules = [{ category: 'session', retainedPrefix: null, pairs }];
    let archives: string;
    beforeEach(async () => {
      archives = await mkdtemp(join(tmpdir(), 'antiphon-rebuild-'));
      for (const position of [100, 900])
        expect(
          await archiveEvents({ pool, archiver: admin, folder: archives, rules, before: { position } }),
        ).not.toBeNull();
    });
    afterEach(async () => {
      for (const { archiveId } of await listArchives(admin)) await restoreArchive(admin, archives, archiveId);
      await rm(archives, { recursive: true });
    });

    it('is rejected without the archive files, and with a changed file', async () => {
      await expect(compareProjection(admin, counts)).rejects.toMatchObject({ code: 'LOG.ARCHIVED' });
      await expect(rebuildProjection(admin, counts)).rejects.toMatchObject({ code: 'LOG.ARCHIVED' });
      const file = (await listArchives(admin))[0]?.file ?? '';
      await copyFile(join(archives, file), join(archives, 'backup'));
      await appendFile(join(archives, file), 'x');
      const damaged = { code: 'LOG.ARCHIVE_DAMAGED' };
      await expect(compareProjection(admin, counts, { archives })).rejects.toMatchObject(damaged);
      await expect(rebuildProjection(admin, counts, { archives })).rejects.toMatchObject(damaged);
      await rename(join(archives, 'backup'), join(archives, file));
    });

    it('folds the archived events together with the log', async () => {
      const head = await store.headPosition();
      expect(await compareProjection(admin, counts, { archives })).toMatchObject({
        ...{ events: head, differing: 0 },
      });
      const audit = await admin.connect();
      await audit.query('begin isolation level repeatable read, read only');
      const exported = await audit.query<{ snapshot: string }>('select pg_export_snapshot() as snapshot');
      const { snapshot } = exported.rows[0]!;
      expect(await compareProjection(admin, counts, { archives, snapshot })).toMatchObject({
        ...{ events: head, differing: 0 },
      });
      await audit.query('rollback');
      audit.release();
      const { rows } = await admin.query<{ stream_id: string }>(
        'select stream_id from archived_streams limit 1',
      );
      await admin.query('update spec_counts set events = events + 1 where stream_id = $1', [
        rows[0]?.stream_id,
      ]);
      expect((await compareProjection(admin, counts, { archives })).first).toMatchObject([
        { key: rows[0], kind: 'other', columns: ['events'] },
      ]);
      expect(await rebuildProjection(admin, counts, { archives })).toMatchObject({
        events: head,
        changed: 1,
      });
      expect((await compareProjection(admin, counts, { archives })).differing).toBe(0);
    });

    it('is rejected when events are archived during the fold, and succeeds when repeated', async () => {
      let left = false;
      const leaving: HandleEvents = async (client, events) => {
        await count(client, events);
        if (left) return;
        left = true;
        await archiveEvents({ pool, archiver: admin, folder: archives, rules, before: { position: 1_100 } });
      };
      const during = { ...counts, handle: leaving };
      await expect(rebuildProjection(admin, during, { archives })).rejects.toMatchObject({
        code: 'LOG.ARCHIVED',
      });
      expect(left).toBe(true);
      expect(await rebuildProjection(admin, during, { archives })).toMatchObject({ changed: 0 });
    });
  });

  it('compares on a given snapshot', async () => {
    const client = await admin.connect();
    await client.query('begin isolation level repeatable read, read only');
    const { rows } = await client.query<{ snapshot: string }>('select pg_export_snapshot() as snapshot');
    const before = await store.headPosition();
    await append();
    await catchUp();
    const compared = await compareProjection(admin, counts, { snapshot: rows[0]!.snapshot });
    await client.query('rollback');
    client.release();
    expect(compared).toMatchObject({ position: before, differing: 0 });
  });
});
