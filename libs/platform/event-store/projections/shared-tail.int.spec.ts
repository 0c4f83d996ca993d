import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import pg from 'pg';
import { ALL_WORKSPACES, createPool } from '@antiphon/database';
import { silentLogger } from '@antiphon/observability';
import {
  createLogMarks,
  createPostgresEventStore,
  createSharedLogPages,
  type EventStore,
  type EventStorePg,
  type ProjectionOptions,
  type RunningProjection,
  runProjection,
} from '@antiphon/event-store';
import { createTestDatabase, freshStream, type TestDatabase, toStream, until } from '@antiphon/testing';
import { letTimePass } from '@antiphon/testing/waits';

const OWN_READ = 'antiphon_projection_snapshot';
const SHARED_READ = 'antiphon_shared_tail';

describe('projections of one process', () => {
  let database: TestDatabase;
  let admin: pg.Pool;
  let pool: pg.Pool;
  let store: EventStore & EventStorePg;
  let wakes: Set<() => void>;
  let running: RunningProjection[];
  let queries: string[];

  beforeAll(async () => {
    database = await createTestDatabase();
    admin = createPool({ url: database.url, applicationName: 'spec' });
    const url = database.urlFor('agent');
    pool = createPool({ url, applicationName: 'spec', max: 4, workspace: ALL_WORKSPACES });
    store = createPostgresEventStore(pool, { onAppended: () => wakes.forEach((wake) => wake()) });
  }, 60_000);
  afterAll(async () => {
    await store.close();
    await Promise.all([pool.end(), admin.end()]);
    await database.drop();
  }, 60_000);
  beforeEach(() => {
    [wakes, running, queries] = [new Set(), [], []];
    const query = pg.Client.prototype.query as unknown as (...args: unknown[]) => unknown;
    jest.spyOn(pg.Client.prototype, 'query').mockImplementation(function (this: pg.Client, ...args) {
      queries.push(String((args[0] as { readonly name?: string }).name));
      return query.apply(this, args) as undefined;
    });
  });
  afterEach(async () => {
    await Promise.all(running.map((one) => one.stop()));
    jest.restoreAllMocks();
  });

  const count = (name: string): number => queries.filter((one) => one === name).length;
  const append = (category = 'session', events = 1) =>
    store.append({ workspace: 'default', streams: [toStream(freshStream(category), 'any', events)] });
  const logged = async (...categories: string[]): Promise<number[]> =>
    (await store.readLog({ after: 0, limit: 100_000, categories })).map(({ position }) => position);

  /** Starts a projection that remembers the positions it has applied. */
  const start = (more: Partial<ProjectionOptions> = {}) => {
    const seen: number[] = [];
    const projection = runProjection({
      ...{ pool, name: `agent-spec-${randomUUID()}`, categories: ['session'], logger: silentLogger },
      subscribe: (wake) => (wakes.add(wake), () => wakes.delete(wake)),
      pollMs: 60_000,
      handle: (_client, events) => {
        seen.push(...events.map(({ position }) => position));
        return Promise.resolve();
      },
      ...more,
    });
    running.push(projection);
    return { projection, seen };
  };
  const reachHead = async (...all: { readonly projection: RunningProjection }[]): Promise<void> => {
    const head = await store.headPosition();
    await Promise.all(all.map(({ projection }) => projection.waitForPosition(head)));
  };

  it('read new events in one statement, and each applies them once', async () => {
    await append('session', 5);
    const all = [start(), start(), start({ categories: ['task', 'session'] })];
    await reachHead(...all);
    queries = [];
    await append('session', 3);
    await append('task', 2);
    await until(() => all[2]?.seen.length === 10);
    await reachHead(...all);
    expect(count(OWN_READ)).toBe(0);
    for (const { seen } of all.slice(0, 2)) expect(seen).toEqual(await logged('session'));
    expect(all[2]?.seen).toEqual(await logged('session', 'task'));
    expect(count(SHARED_READ)).toBeLessThanOrEqual(12);
  });

  it('share the reads of polls', async () => {
    const all = [start()];
    await reachHead(...all);
    await Promise.all(running.splice(0).map((one) => one.stop()));
    const polling = Array.from({ length: 4 }, () => start({ subscribe: undefined, pollMs: 200 }));
    await reachHead(...polling);
    queries = [];
    await letTimePass(1_000);
    expect(count(SHARED_READ)).toBeLessThanOrEqual(11);
    await append();
    const expected = await logged('session');
    await until(() => polling.every(({ seen }) => seen.length === expected.length));
  });

  it('that are behind read by themselves, and hinder no other', async () => {
    const ahead = start();
    await reachHead(ahead);
    let release = (): void => undefined;
    const blocked = new Promise<void>((resolve) => (release = resolve));
    const seen: number[] = [];
    const slow = start({
      handle: async (_client, events) => {
        await blocked;
        seen.push(...events.map(({ position }) => position));
      },
    });
    for (let n = 0; n < 12; n++) await append('session', 100);
    await reachHead(ahead);
    expect(seen).toEqual([]);
    release();
    await reachHead(slow);
    expect(ahead.seen).toEqual(await logged('session'));
    expect(seen).toEqual(ahead.seen);
  });

  it('get events of a category that none of them had before', async () => {
    const sessions = start();
    await reachHead(sessions);
    await append('task', 2);
    const tasks = start({ categories: ['task'] });
    await append('task', 2);
    await reachHead(sessions, tasks);
    await append('task');
    await reachHead(sessions, tasks);
    expect(tasks.seen).toEqual(await logged('task'));
    expect(sessions.seen).toEqual(await logged('session'));
  });

  it('lose and repeat nothing when the connection of their reads breaks', async () => {
    const all = [start(), start()];
    await reachHead(...all);
    const { rows } = await admin.query<{ pid: number }>(
      `select pid from pg_stat_activity where query ilike '%jsonb_object_agg(n.name%' and pid <> pg_backend_pid()`,
    );
    expect(rows.length).toBeGreaterThan(0);
    for (const { pid } of rows) await admin.query('select pg_terminate_backend($1)', [pid]);
    await append('session', 4);
    await reachHead(...all);
    await append('session', 4);
    await reachHead(...all);
    for (const { seen } of all) expect(seen).toEqual(await logged('session'));
  });

  it('tell a poller of new events of its categories alone', async () => {
    const sessions = start();
    await reachHead(sessions);
    const marks = createLogMarks(pool, ['task']);
    const first = await marks.readMark(0);
    await append('session', 2);
    expect(await marks.readMark(0)).toBe(first);
    await append('task');
    const second = await marks.readMark(0);
    expect(second).not.toBe(first);
    expect(await marks.readMark(0)).toBe(second);
    queries = [];
    expect(await marks.readMark(60_000)).toBe(second);
    expect(queries).toEqual([]);
    // More events than one read has.
    await append('session', 600);
    await append('task');
    const third = await marks.readMark(0);
    expect(third).not.toBe(second);
    await marks.close();
  });

  it('share their reads with a reader of all events', async () => {
    const sessions = start();
    await reachHead(sessions);
    const pages = createSharedLogPages(pool, store);
    let after = await store.headPosition();
    expect((await pages.readLogPage({ after, limit: 10 })).events).toEqual([]);
    const read: number[] = [];
    await append('session', 7);
    await append('task', 8);
    for (let hasMore = true; hasMore;) {
      const page = await pages.readLogPage({ after, limit: 4 });
      read.push(...page.events.map(({ position }) => position));
      after = read.at(-1) ?? after;
      ({ hasMore } = page);
    }
    const all = await store.readLog({ after: 0, limit: 100_000 });
    expect(read).toEqual(all.slice(-15).map(({ position }) => position));
    // An old position is older than what is kept.
    const first = await pages.readLogPage({ after: 0, limit: 2 });
    expect(first.events.map(({ position }) => position)).toEqual(
      all.slice(0, 2).map(({ position }) => position),
    );
    await pages.leave();
    await append('task', 3);
    await reachHead(sessions);
    const { events } = await pages.readLogPage({ after, limit: 10 });
    expect(events.map(({ category }) => category)).toEqual(['task', 'task', 'task']);
    await pages.leave();
    await pages.leave();
  });
});
