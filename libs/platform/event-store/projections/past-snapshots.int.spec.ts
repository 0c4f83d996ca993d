import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import type pg from 'pg';
import { acrossWorkspaces, createPool, inWorkspace } from '@antiphon/database';
import {
  compareProjection,
  createPostgresEventStore,
  PastReads,
  rebuildProjection,
  runProjection,
  SnapshotMaker,
  type EventStore,
  type EventStorePg,
  type ProjectionDefinition,
  type RunningProjection,
} from '@antiphon/event-store';
import { silentLogger } from '@antiphon/observability';
import { createTestDatabase, toStream, type TestDatabase } from '@antiphon/testing';
import { beginEpoch } from '../read/log-epoch.js';
import { strideOf, thinOut, type StoredSnapshot } from './past-snapshots.js';

jest.setTimeout(60_000);

const SAVE_SQL = `insert into spec_rows as c (workspace, stream_id, events, last)
  select workspace, stream_id, count(*), max(position)
  from unnest($1::text[], $2::text[], $3::bigint[]) as e (workspace, stream_id, position) group by 1, 2
  on conflict (workspace, stream_id) do update set events = c.events + excluded.events, last = excluded.last`;
const INSERT_SQL = `insert into spec_facts (workspace, at) select * from unnest($1::text[], $2::bigint[])`;
const EVERY = 500;

let database: TestDatabase;
let admin: pg.Pool;
let pool: pg.Pool;
let store: EventStore & EventStorePg;
let past: PastReads;
let maker: SnapshotMaker;
let projection: RunningProjection;
/** Number of events that reads of the past have folded. */
let folded = 0;
let isLive = false;
let number = 0;

const definition = (name: string): ProjectionDefinition => ({
  ...{ name, service: 'agent', categories: ['session'] },
  tables: [{ name: 'spec_rows' }, { name: 'spec_facts', positionColumn: 'at' }],
  handle: async (client, events) => {
    const values = [
      events.map(({ workspace }) => workspace),
      events.map(({ streamId }) => streamId),
      events.map(({ position }) => position),
    ];
    await client.query(SAVE_SQL, values);
    await client.query(INSERT_SQL, [values[0], values[2]]);
    const { rows } = await client.query<{ live: boolean }>(
      `select pg_my_temp_schema() = 0 or to_regclass('pg_temp.spec_rows') is null as live`,
    );
    if (rows[0]?.live !== true) folded += events.length;
    else isLive = true;
  },
});
let rows: ProjectionDefinition;

const append = (workspace: string, stream: string, events = 100) =>
  store.append({ workspace, streams: [toStream(`session-${stream}`, 'any', events)] });
const catchUp = async () => projection.waitForPosition(await store.headPosition());
/** Appends to many streams of two workspaces, with a snapshot wherever one is due. */
const grow = async (appends: number): Promise<void> => {
  for (let n = 0; n < appends; n++) {
    await append(n % 4 === 0 ? 'other' : 'default', `s${n % 50}`);
    await catchUp();
    await maker.makeAll();
  }
};

const ROWS_SQL = 'select stream_id, events, last from spec_rows order by stream_id';
const readRows = async (at: number, workspace = 'default') =>
  (await past.read(workspace, at, (queries) => queries.query(ROWS_SQL))).value.rows.map((row) => ({
    ...row,
  }));
const expected = async (at: number, workspace = 'default') =>
  (
    await admin.query(
      `select stream_id, count(*) as events, max(position) as last from events
       where workspace = $1 and category = 'session' and position <= $2 group by 1 order by 1`,
      [workspace, at],
    )
  ).rows;
const snapshots = async (): Promise<{ workspace: string; position: number }[]> =>
  (
    await admin.query(
      'select workspace, position::integer from projection_snapshots where projection = $1 order by 2',
      [rows.name],
    )
  ).rows;

beforeAll(async () => {
  database = await createTestDatabase();
  admin = createPool({ url: database.url, applicationName: 'spec' });
  await admin.query(`create table spec_rows (workspace text, stream_id text, events bigint not null, last bigint not null,
      primary key (workspace, stream_id));
    create table spec_facts (workspace text, at bigint, primary key (workspace, at));
    grant select, insert, update on spec_rows, spec_facts to antiphon_agent, antiphon_reader`);
  pool = createPool({ url: database.urlFor('agent'), applicationName: 'spec', max: 4 });
  store = createPostgresEventStore(pool);
});
afterAll(async () => {
  await store.close();
  await Promise.all([pool.end(), admin.end()]);
  await database.drop();
});
beforeEach(() => {
  rows = definition(`agent-spec-${++number}`);
  projection = runProjection({ ...rows, pool, logger: silentLogger, pollMs: 20 });
  past = new PastReads({ pool, definitions: [rows], snapshotEvery: EVERY });
  maker = new SnapshotMaker({ pool, definitions: [rows], logger: silentLogger, every: EVERY });
});
afterEach(async () => {
  await Promise.all([past.close(), projection.stop()]);
  await admin.query('truncate spec_rows, spec_facts');
});

describe('the snapshots of a projection', () => {
  it('let a read of the past fold the events of one stride at most', async () => {
    await grow(40);
    expect(isLive).toBe(true);
    const head = await store.headPosition();
    expect((await snapshots()).length).toBeGreaterThan(5);
    for (const at of [head / 2, head, 1, head / 4, head - 1, head / 2 + 7].map(Math.floor)) {
      folded = 0;
      expect(await readRows(at)).toEqual(await expected(at));
      expect(folded).toBeLessThan(2 * EVERY);
      expect(await readRows(at, 'other')).toEqual(await expected(at, 'other'));
    }
  });

  it('are stored by the first read of a log that has none', async () => {
    await catchUp();
    const head = await store.headPosition();
    await readRows(head);
    const own = await snapshots();
    expect(own.length).toBeGreaterThan(1);
    expect(own.every(({ workspace }) => workspace === 'default')).toBe(true);
    await past.close();
    past = new PastReads({ pool, definitions: [rows], snapshotEvery: EVERY });
    folded = 0;
    const at = own[0]!.position + 3;
    expect(await readRows(at)).toEqual(await expected(at));
    expect(folded).toBeLessThan(10);
  });

  it('hold no rows that are only inserted: a read takes the live ones up to its position', async () => {
    await grow(10);
    const at = (await store.headPosition()) - 123;
    const found = await past.read('default', at, (queries) =>
      queries.query(
        `select count(*)::integer as facts, max(at)::integer as last from spec_facts where workspace = 'default'`,
      ),
    );
    const { rows: facts } = await admin.query(
      `select count(*)::integer as facts, max(position)::integer as last from events
       where workspace = 'default' and category = 'session' and position <= $1`,
      [at],
    );
    expect(found.value.rows).toEqual(facts);
    const { rows: stored } = await admin.query('select distinct table_name from projection_snapshot_rows');
    expect(stored).toEqual([{ table_name: 'spec_rows' }]);
  });

  it('are not used after a rebuild, a restore of the log, or another form of a table', async () => {
    const at = Math.floor((await store.headPosition()) / 2);
    const folds = async (): Promise<number> => {
      await past.close();
      past = new PastReads({ pool, definitions: [rows], snapshotEvery: 1e9 });
      folded = 0;
      expect(await readRows(at)).toEqual(await expected(at));
      return folded;
    };
    await catchUp();
    await readRows(at);
    expect(await folds()).toBeLessThan(2 * EVERY);
    await admin.query('alter table spec_rows add column more text');
    expect(await folds()).toBeGreaterThan(2 * EVERY);
    await admin.query('alter table spec_rows drop column more');
    await rebuildProjection(admin, rows);
    expect(await snapshots()).toEqual([]);
    expect(await folds()).toBeGreaterThan(2 * EVERY);
    await past.close();
    past = new PastReads({ pool, definitions: [rows], snapshotEvery: EVERY });
    await readRows(at);
    expect((await snapshots()).length).toBeGreaterThan(0);
    const client = await admin.connect();
    await beginEpoch(client, []);
    client.release();
    expect(await snapshots()).toEqual([]);
  });

  it('are neither used nor kept once events were archived', async () => {
    await projection.waitForPosition(0);
    await catchUp();
    await maker.makeAll();
    expect((await snapshots()).length).toBe(1);
    await admin.query(`insert into log_archives (archive_id, file, sha256, cut_position, events, streams, archived_at)
      values (gen_random_uuid(), 'x', '\\x00', 1, 1, 1, now())`);
    try {
      await expect(readRows(await store.headPosition())).rejects.toMatchObject({ code: 'LOG.ARCHIVED' });
      const again = new SnapshotMaker({ pool, definitions: [rows], logger: silentLogger, every: EVERY });
      await again.makeAll();
      expect(await snapshots()).toEqual([]);
    } finally {
      await admin.query('delete from log_archives');
    }
  });

  it('of a workspace are hidden from others, and written by the service of the projection only', async () => {
    await catchUp();
    await maker.makeAll();
    const count = 'select count(*)::integer as rows from projection_snapshot_rows where projection = $1';
    const fromOther = await inWorkspace(pool, 'absent').query<{ rows: number }>(count, [rows.name]);
    expect(fromOther.rows[0]?.rows).toBe(0);
    const metering = createPool({ url: database.urlFor('metering'), applicationName: 'spec', max: 1 });
    const gateway = createPool({ url: database.urlFor('gateway'), applicationName: 'spec', max: 1 });
    try {
      const gone = await acrossWorkspaces(metering).query(
        'delete from projection_snapshots where projection = $1',
        [rows.name],
      );
      expect(gone.rowCount).toBe(0);
      const write = `insert into projection_snapshots (projection, workspace, position, epoch, form, bytes)
        values ('agent-x', '*', 1, 1, '', 0)`;
      await expect(acrossWorkspaces(metering).query(write)).rejects.toMatchObject({ code: '42501' });
      await expect(inWorkspace(pool, 'default').query(write)).rejects.toMatchObject({ code: '42501' });
      await expect(gateway.query('select from projection_snapshots')).rejects.toMatchObject({
        code: '42501',
      });
    } finally {
      await Promise.all([metering.end(), gateway.end()]);
    }
  });

  it('are compared with the fold of the log by the audit', async () => {
    await catchUp();
    await readRows(await store.headPosition());
    await maker.makeAll();
    const compare = async () => {
      const client = await admin.connect();
      await client.query('begin isolation level repeatable read, read only');
      const exported = await client.query<{ id: string }>('select pg_export_snapshot() as id');
      const compared = await compareProjection(admin, rows, { snapshot: exported.rows[0]!.id });
      await client.query('rollback');
      client.release();
      return compared;
    };
    expect((await snapshots()).map(({ workspace }) => workspace)).toEqual(
      expect.arrayContaining(['*', 'default']),
    );
    expect(await compare()).toMatchObject({ differing: 0 });
    await admin.query(
      `update projection_snapshot_rows set rows = jsonb_set(rows, '{0,events}', '1000000')
      where projection = $1 and scope = '*' and workspace = 'other'`,
      [rows.name],
    );
    const { differing, first } = await compare();
    expect(differing).toBe(1);
    expect(first).toEqual([
      expect.objectContaining({
        kind: 'other',
        columns: ['events'],
        table: expect.stringMatching(/^spec_rows, snapshot at /),
      }),
    ]);
  });

  it('are not made while a stream is parked, because its rows lack events', async () => {
    await catchUp();
    await admin.query(
      `insert into projection_parked (projection, workspace, stream_id, position, reason, parked_at)
       values ($1, 'default', 's', 1, 'x', now())`,
      [rows.name],
    );
    await maker.makeAll();
    expect(await snapshots()).toEqual([]);
  });
});

describe('the bounds of snapshots', () => {
  const stored = (position: number, bytes: number, scope = '*'): StoredSnapshot => ({
    scope,
    position,
    bytes,
  });

  it('keep at most 32 of a scope, spread over the log', () => {
    const all = Array.from({ length: 100 }, (_, index) => stored((index + 1) * 10_000, 1_000));
    const kept = thinOut(all, 1_000_000);
    expect(kept.length).toBeLessThanOrEqual(32);
    expect(
      Math.max(...kept.map(({ position }, index) => position - (kept[index - 1]?.position ?? 0))),
    ).toBeLessThanOrEqual(40_000);
  });

  it('keep less than 256 MiB of all scopes, those of single workspaces last', () => {
    const MiB = 2 ** 20;
    expect(strideOf(1_000_000, 100 * MiB)).toBeGreaterThan(100_000);
    const shared = [stored(400_000, 100 * MiB), stored(800_000, 100 * MiB)];
    const kept = thinOut([stored(100_000, 90 * MiB, 'w'), ...shared], 900_000);
    expect(kept).toEqual(shared);
  });
});

describe('the temporary tables of reads of the past', () => {
  const SIZE_SQL = `select sum(pg_total_relation_size(oid))::integer as bytes from pg_class
    where relnamespace = pg_my_temp_schema() and relkind = 'r'`;
  const sizeAt = async (at: number): Promise<number> => {
    const { value } = await past.read('wide', at, async (queries) => {
      await queries.query('select count(*) from spec_rows');
      return queries.query<{ bytes: number }>(SIZE_SQL);
    });
    return value.rows[0]?.bytes ?? 0;
  };

  it('do not grow by reads to and fro', async () => {
    for (let n = 0; n < 60; n++)
      await store.append({
        workspace: 'wide',
        streams: Array.from({ length: 40 }, (_, s) => toStream(`session-wide-${n}-${s}`, 'any', 2)),
      });
    const head = await store.headPosition();
    await catchUp();
    const [first] = [await sizeAt(head)];
    for (let pair = 0; pair < 30; pair++) {
      await sizeAt(1);
      await sizeAt(head);
    }
    expect(first).toBeGreaterThan(100_000);
    expect(await sizeAt(head)).toBeLessThan(1.5 * first);
  });

  it('are emptied after a read that made them too large, and a gauge has their bytes', async () => {
    await catchUp();
    const head = await store.headPosition();
    const large = await sizeAt(head);
    await past.close();
    past = new PastReads({ pool, definitions: [rows], maxBytes: large / 2 });
    expect(await sizeAt(head)).toBeGreaterThan(large / 2);
    // The next read waits until the size was bounded.
    await past.read('wide', head, (queries) => queries.query('select 1'));
    expect(past.bytes()).toBeLessThan(large / 2);
    expect(await readRows(head, 'wide')).toEqual(await expected(head, 'wide'));
  });
});
