import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { ALL_WORKSPACES, createPipelinedPool, createPool } from '@antiphon/database';
import { silentLogger } from '@antiphon/observability';
import { createPostgresEventStore, type HandleEvents, runProjection } from '@antiphon/event-store';
import { createTestDatabase, freshStream, type TestDatabase, toStream, until } from '@antiphon/testing';
import { runBatch } from './projection-batch.js';
import { ensureCheckpoint, PROJECTION_PRELUDE } from './projection-checkpoint.js';
import { readSnapshot } from './projection-snapshot.js';
import { runWithMove } from './projection-checkpoint.js';

const AT_START = { from: 0, to: 0 };
const AT_ONCE = { waitForMove: false };

describe('the move of a checkpoint', () => {
  let database: TestDatabase;
  let admin: pg.Pool;
  let pool: pg.Pool;
  let mine: pg.Pool;
  let others: pg.Pool;
  let name: string;
  const store = () => createPostgresEventStore(pool);
  const append = (streamId = freshStream()) =>
    store().append({ workspace: 'default', streams: [toStream(streamId, 'any')] });

  beforeAll(async () => {
    database = await createTestDatabase();
    admin = createPool({ url: database.url, applicationName: 'spec' });
    await admin.query(
      `create table seen (projection text, position bigint, stream_id text, primary key (projection, position))`,
    );
    await admin.query('grant select, insert on seen to antiphon_agent');
    pool = createPool({ url: database.urlFor('agent'), applicationName: 'spec' });
    const options = { prelude: PROJECTION_PRELUDE, workspace: ALL_WORKSPACES };
    [mine, others] = [1, 2].map(() => createPipelinedPool(pool, options)) as [pg.Pool, pg.Pool];
    await append();
  }, 60_000);
  afterAll(async () => {
    await Promise.all([mine, others, pool, admin].map((one) => one.end()));
    await database.drop();
  }, 60_000);
  beforeEach(async () => {
    name = `agent-spec-${randomUUID()}`;
    await ensureCheckpoint(pool, name);
  });

  const write = (client: pg.ClientBase, position: number) =>
    client.query('insert into seen values ($1, $2, $3)', [name, position, 'x']);
  const record: HandleEvents = async (client, events) => {
    await client.query('insert into seen select $1, unnest($2::bigint[]), unnest($3::text[])', [
      name,
      events.map(({ position }) => position),
      events.map(({ streamId }) => streamId),
    ]);
  };
  const sourceOf = (handle: HandleEvents) => ({
    pool: mine,
    name,
    categories: ['session'],
    handle,
    batchSize: 100,
  });
  const seen = async () =>
    (
      await admin.query<{ position: string }>('select position from seen where projection = $1 order by 1', [
        name,
      ])
    ).rows.map(({ position }) => Number(position));
  const checkpoint = async () =>
    Number(
      (
        await admin.query<{ position: string }>(
          'select position from projection_checkpoints where name = $1',
          [name],
        )
      ).rows[0]?.position,
    );
  const to = (position: number) => ({ name, from: 0, to: position, epoch: 1 });

  it('succeeds in one process and discards the work and errors of the other', async () => {
    let entered = false;
    let finish: () => void = () => undefined;
    const first = runWithMove(
      mine,
      to(1),
      async (client) => {
        await write(client, 1);
        entered = true;
        await new Promise<void>((resolve) => (finish = resolve));
      },
      AT_ONCE,
    );
    await until(() => entered);
    const second = await runWithMove(others, to(1), (client) => write(client, 2), AT_ONCE);
    expect(second.state).toBe('contended');
    finish();
    expect((await first).state).toBe('moved');
    // The primary key rejects this row, because the first process has written it.
    const late = await runWithMove(others, to(1), (client) => write(client, 1), AT_ONCE);
    expect(late.state).toBe('contended');
    expect(await seen()).toEqual([1]);
  });

  it('runs no work when the work waits for a move that fails', async () => {
    let worked = false;
    const work = () => Promise.resolve((worked = true));
    expect(await runWithMove(mine, { ...to(2), from: 1 }, work, { waitForMove: true })).toEqual({
      state: 'contended',
    });
    expect(worked).toBe(false);
  });

  it('rolls back with everything sent with it when a statement fails', async () => {
    const failing = runWithMove(
      mine,
      to(1),
      (client) =>
        Promise.all([
          write(client, 1),
          client.query({ name: 'spec_bad', text: 'select $1::int', values: ['x'] }),
          client.query({ name: 'spec_never_parsed', text: 'select 1 as one' }),
        ]),
      AT_ONCE,
    );
    await expect(failing).rejects.toMatchObject({ cause: { code: '22P02' } });
    expect([await seen(), await checkpoint()]).toEqual([[], 0]);
    // The connection stays usable, and so does a statement whose first use failed.
    const again = runWithMove(
      mine,
      to(1),
      (client) => client.query({ name: 'spec_never_parsed', text: 'select 1 as one' }),
      AT_ONCE,
    );
    expect(await again).toMatchObject({ state: 'moved', result: { rows: [{ one: 1 }] } });
  });

  it('rejects when a handler swallows the error of a statement', async () => {
    const swallowing = runWithMove(
      mine,
      to(1),
      (client) => client.query('select 1 / 0').catch(() => undefined),
      AT_ONCE,
    );
    await expect(swallowing).rejects.toMatchObject({ code: 'LOG.PROJECTION_UNDONE' });
    expect(await checkpoint()).toBe(0);
  });

  it('is contended when the log was restored after the snapshot', async () => {
    const source = sourceOf(record);
    const before = await readSnapshot(source, AT_START);
    await admin.query('update log_head set epoch = epoch + 1');
    try {
      expect(await runBatch(source, before, false)).toMatchObject({ state: 'contended' });
      expect([await seen(), await checkpoint()]).toEqual([[], 0]);
    } finally {
      await admin.query('update log_head set epoch = epoch - 1');
    }
  });

  it('applies a stream that was replayed after the snapshot', async () => {
    const streamId = freshStream();
    const { lastPosition } = await append(streamId);
    await admin.query(`insert into projection_parked values ($1, 'default', $2, 1, 'spec', now())`, [
      name,
      streamId,
    ]);
    const source = sourceOf(record);
    const before = await readSnapshot(source, AT_START);
    expect(before.hasParkedStreams).toBe(true);
    await admin.query('delete from projection_parked where projection = $1', [name]);
    await runBatch(source, before, false);
    expect(await seen()).toContain(lastPosition);
  });

  it('alone commits asynchronously, and its connection is read-only outside of it', async () => {
    const show = async (client: pg.ClientBase | pg.Pool) =>
      (await client.query<{ synchronous_commit: string }>('show synchronous_commit')).rows[0]
        ?.synchronous_commit;
    expect(await runWithMove(mine, to(1), show, AT_ONCE)).toEqual({ state: 'moved', result: 'off' });
    expect([await show(mine), await show(pool)]).toEqual(['on', 'on']);
    await expect(mine.query(`insert into seen values ('x', 1, 'x')`)).rejects.toMatchObject({
      code: '25006',
    });
  });

  it('is repeated when the connection is lost between move and commit', async () => {
    let lost = false;
    const projection = runProjection({
      pool,
      name,
      categories: ['session'],
      logger: silentLogger,
      handle: async (client, events) => {
        await record(client, events);
        if (lost) return;
        lost = true;
        const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid');
        await admin.query('select pg_terminate_backend($1, 5000)', [rows[0]?.pid]);
      },
    });
    const head = await store().headPosition();
    await projection.waitForPosition(head);
    const all = await store().readLog({ after: 0, limit: 1_000, categories: ['session'] });
    expect(await seen()).toEqual(all.map(({ position }) => position));
    await projection.stop();
  });

  it('follows within a second over skipped events, and callers do not wait for it', async () => {
    const start = () =>
      runProjection({ pool, name, categories: ['session'], handle: record, logger: silentLogger });
    const both = [start(), start()];
    await Promise.all(both.map(async (one) => one.waitForPosition(await store().headPosition())));
    const metering = createPool({ url: database.urlFor('metering'), applicationName: 'spec' });
    const { lastPosition } = await createPostgresEventStore(metering).append({
      workspace: 'default',
      streams: [toStream(freshStream('budget'), 0, 3)],
    });
    await metering.end();
    await Promise.all(both.map((one) => one.waitForPosition(lastPosition)));
    await until(async () => (await checkpoint()) === lastPosition);
    await Promise.all(both.map((one) => one.stop()));
  });

  it('reads the end of a grown log by its index, with plans from when it was empty', async () => {
    const one = createPool({
      url: database.urlFor('agent'),
      applicationName: 'spec',
      max: 1,
      workspace: ALL_WORKSPACES,
    });
    const source = { ...sourceOf(record), pool: one };
    for (let read = 0; read < 8; read++) await readSnapshot(source, AT_START);
    await Promise.all(Array.from({ length: 300 }, () => append()));
    const rowsScanned = async (): Promise<number> => {
      await one.query('select pg_stat_force_next_flush()');
      const { rows } = await admin.query<{ scanned: string }>(
        `select seq_tup_read as scanned from pg_stat_user_tables where relname = 'events'`,
      );
      return Number(rows[0]?.scanned);
    };
    const before = await rowsScanned();
    const head = (await readSnapshot(source, AT_START)).head;
    await readSnapshot(source, { from: 0, to: head });
    expect(head).toBeGreaterThan(300);
    expect(await rowsScanned()).toBe(before);
    await one.end();
  });
});
