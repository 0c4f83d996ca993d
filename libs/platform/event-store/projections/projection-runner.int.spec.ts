import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { ALL_WORKSPACES, createPool, createWorkStarts } from '@antiphon/database';
import { transient } from '@antiphon/kernel';
import { silentLogger } from '@antiphon/observability';
import {
  createPostgresEventStore,
  type EventStore,
  type EventStorePg,
  type HandleEvents,
  type ProjectionOptions,
  type RecordedEvent,
  type RunningProjection,
  reachPosition,
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

const workspace = 'default';

describe('a projection', () => {
  let database: TestDatabase;
  let pool: pg.Pool;
  let store: EventStore & EventStorePg;
  let wakes: Set<() => void>;
  let running: RunningProjection[];
  let name: string;

  beforeAll(async () => {
    database = await createTestDatabase();
    const admin = createPool({ url: database.url, applicationName: 'spec' });
    await admin.query(
      `create table seen (projection text, position bigint, stream_id text, primary key (projection, position))`,
    );
    await admin.query('grant select, insert on seen to antiphon_agent');
    await admin.end();
    pool = createPool({
      ...{ url: database.urlFor('agent'), applicationName: 'spec', max: 8, workspace: ALL_WORKSPACES },
    });
    store = createPostgresEventStore(pool, { onAppended: () => wakes.forEach((wake) => wake()) });
  }, 60_000);
  afterAll(async () => {
    await store.close();
    await pool.end();
    await database.drop();
  }, 60_000);
  beforeEach(() => {
    wakes = new Set();
    running = [];
    name = `agent-spec-${randomUUID()}`;
  });
  afterEach(() => Promise.all(running.map((one) => one.stop())));

  /** Writes each event's position; the primary key rejects a second time. */
  const record: HandleEvents = async (client, events) => {
    await client.query('insert into seen select $1, unnest($2::bigint[]), unnest($3::text[])', [
      name,
      events.map(({ position }) => position),
      events.map(({ streamId }) => streamId),
    ]);
  };
  const start = (more: Partial<ProjectionOptions> = {}): RunningProjection => {
    const subscribe = (wake: () => void) => {
      wakes.add(wake);
      return () => wakes.delete(wake);
    };
    const projection = runProjection({
      pool,
      name,
      categories: ['session'],
      handle: record,
      logger: silentLogger,
      subscribe,
      pollMs: 60_000,
      ...more,
    });
    running.push(projection);
    return projection;
  };
  const seen = async (streamId?: string): Promise<number[]> => {
    const { rows } = await pool.query<{ position: string }>(
      'select position from seen where projection = $1 and ($2::text is null or stream_id = $2) order by position',
      [name, streamId ?? null],
    );
    return rows.map(({ position }) => Number(position));
  };
  const append = (streamId = freshStream(), count = 1, events?: RecordedEvent['data'][]) =>
    store.append({
      workspace,
      streams: [
        events
          ? { streamId, expectedVersion: 'any', events: events.map((data) => newEvent(data)) }
          : toStream(streamId, 'any', count),
      ],
    });
  const positionsOf = async (): Promise<number[]> =>
    (await store.readLog({ after: 0, limit: 100_000, categories: ['session'] })).map(
      ({ position }) => position,
    );

  it('applies existing and new events, each once and in order', async () => {
    for (let n = 0; n < 7; n++) await append(undefined, 3);
    const order: number[] = [];
    const projection = start({
      batchSize: 5,
      handle: async (client, events) => {
        order.push(...events.map(({ position }) => position));
        await record(client, events);
      },
    });
    await projection.waitForPosition(await store.headPosition());
    const { lastPosition } = await append();
    await projection.waitForPosition(lastPosition);
    expect(order).toEqual(await positionsOf());
    expect(await seen()).toEqual(order);
    expect(projection.status()).toEqual({ position: lastPosition, isFailing: false });
  });

  it('follows a notification at once, and polls when notifications are lost', async () => {
    const notified = start();
    await notified.waitForPosition(await store.headPosition());
    const { lastPosition } = await append();
    await until(() => notified.status().position === lastPosition);
    await notified.stop();
    const polling = start({ pollMs: 20, subscribe: undefined });
    await polling.waitForPosition(lastPosition);
    const next = await append();
    await until(() => polling.status().position === next.lastPosition);
  });

  it('lets a read wait for a position, and gives up on one that is not reached in time', async () => {
    const { promise: gate, resolve: open } = Promise.withResolvers<void>();
    const { lastPosition } = await append();
    const projection = start({
      handle: async (client, events) => {
        await gate;
        await record(client, events);
      },
    });
    await expect(reachPosition(pool, lastPosition, 20)).rejects.toMatchObject({
      kind: 'transient',
      code: 'LOG.PROJECTION_BEHIND',
      data: { position: lastPosition },
    });
    open();
    await reachPosition(pool, lastPosition, 10_000);
    expect(projection.status().position).toBeGreaterThanOrEqual(lastPosition);
    expect(await seen()).toContain(lastPosition);
    await projection.stop();
    await reachPosition(pool, lastPosition + 1_000, 20);
  });

  it('applies each event once while several processes append and project', async () => {
    const others = Array.from({ length: 3 }, () =>
      createPostgresEventStore(pool, { onAppended: () => wakes.forEach((wake) => wake()) }),
    );
    const projections = [start({ batchSize: 7 }), start({ batchSize: 11 }), start({ batchSize: 3 })];
    await Promise.all(
      others.flatMap((other) =>
        Array.from({ length: 40 }, (_, n) =>
          other.append({ workspace, streams: [toStream(`session-shared-${n % 5}`, 'any')] }),
        ),
      ),
    );
    const head = await store.headPosition();
    await Promise.all(projections.map((projection) => projection.waitForPosition(head)));
    expect(await seen()).toEqual(await positionsOf());
  });

  it('parks no event that other processes have just begun to apply', async () => {
    await append(undefined, 3);
    const [first] = await positionsOf();
    const starts = createWorkStarts(pool);
    // Two more processes start at this checkpoint, and are about to apply the first event.
    for (let n = 0; n < 2; n++) {
      await starts.begin('projection', `${name}@0`);
      await starts.begin('projection-event', `${name}@${first}`);
    }
    await start().waitForPosition(await store.headPosition());
    expect(await seen()).toEqual(await positionsOf());
  });

  it('skips events of other categories', async () => {
    const metering = createPool({ url: database.urlFor('metering'), applicationName: 'spec' });
    const foreign = createPostgresEventStore(metering);
    const { lastPosition } = await foreign.append({
      workspace,
      streams: [toStream(freshStream('budget'), 0, 5)],
    });
    await metering.end();
    const projection = start();
    await projection.waitForPosition(lastPosition);
    expect(await seen()).toEqual(await positionsOf());
  });

  it('keeps rows and checkpoint consistent when batches fail', async () => {
    let failures = 3;
    const projection = start({
      handle: async (client, events) => {
        await record(client, events);
        if (failures-- > 0) throw transient('TEST.AWAY', 'not now');
      },
    });
    await append();
    await until(() => projection.status().isFailing);
    await projection.waitForPosition(await store.headPosition());
    expect(await seen()).toEqual(await positionsOf());
    // The position is committed before the process knows of it.
    await until(() => !projection.status().isFailing);
  });

  it('parks the stream of an event that fails, applies the others, and replays after the fix', async () => {
    const [bad, good] = [freshStream(), freshStream()];
    await start().waitForPosition(await store.headPosition());
    await running[0]!.stop();
    await append(bad);
    const poisoned = await append(bad, 0, [{ poison: true }]);
    await append(good, 2);
    await append(bad, 2);
    const picky: HandleEvents = async (client, events) => {
      await record(client, events);
      if (events.some(({ data }) => data['poison'] === true)) await client.query(`select 'x'::int`);
    };
    const projection = start({ handle: picky });
    await projection.waitForPosition(await store.headPosition());
    expect(await seen(bad)).toHaveLength(1);
    expect(await seen(good)).toHaveLength(2);
    const late = await append(bad);
    await projection.waitForPosition(late.lastPosition);
    expect(await seen(bad)).toHaveLength(1);
    const { rows } = await pool.query(
      'select stream_id, position, reason from projection_parked where projection = $1',
      [name],
    );
    expect(rows).toEqual([
      {
        stream_id: bad,
        position: String(poisoned.firstPosition),
        reason: expect.stringContaining('invalid input syntax'),
      },
    ]);
    await projection.stop();

    await start({ handle: picky }).waitForPosition(late.lastPosition);
    expect(await seen(bad)).toHaveLength(1);
    await running.at(-1)!.stop();

    const fixed = start();
    await until(async () => (await seen(bad)).length === 5);
    await fixed.waitForPosition(late.lastPosition);
    expect(await seen()).toEqual(await positionsOf());
    expect((await pool.query('select from projection_parked where projection = $1', [name])).rowCount).toBe(
      0,
    );
  });

  it('parks nothing when every event would fail', async () => {
    const projection = start({
      handle: async (client) => void (await client.query('select * from no_such_table')),
    });
    await append();
    await until(() => projection.status().isFailing);
    expect((await pool.query('select from projection_parked where projection = $1', [name])).rowCount).toBe(
      0,
    );
    expect(await seen()).toEqual([]);
  });

  it('finishes its transaction on stop and rejects waiting callers', async () => {
    await append();
    let entered = false;
    let finish: () => void = () => undefined;
    const projection = start({
      handle: async (client, events) => {
        entered = true;
        await new Promise<void>((resolve) => (finish = resolve));
        await record(client, events);
      },
    });
    const waiting = projection.waitForPosition(1_000_000);
    await until(() => entered);
    const stopping = projection.stop();
    finish();
    await stopping;
    await expect(waiting).rejects.toMatchObject({ kind: 'transient', code: 'LOG.PROJECTION_STOPPED' });
    expect((await seen()).length).toBeGreaterThan(0);
  });

  it('stops at a log that was restored', async () => {
    const projection = start();
    await projection.waitForPosition(await store.headPosition());
    const admin = createPool({ url: database.url, applicationName: 'spec' });
    await admin.query('update log_head set epoch = epoch + 1');
    const before = await seen();
    await append();
    await until(() => projection.status().isFailing);
    expect(await seen()).toEqual(before);
    await admin.query('update log_head set epoch = epoch - 1');
    await admin.end();
  });
});
