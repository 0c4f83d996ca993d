import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import fc from 'fast-check';
import type pg from 'pg';
import { createPool } from '@antiphon/database';
import {
  createPostgresEventStore,
  PastReads,
  type EventStore,
  type EventStorePg,
  type ProjectionDefinition,
} from '@antiphon/event-store';
import { createTestDatabase, toStream, type TestDatabase } from '@antiphon/testing';
import { giveTimeToFail, until } from '@antiphon/testing/waits';

jest.setTimeout(60_000);

const COUNT_SQL = `insert into spec_counts as c (workspace, stream_id, events, last)
  select workspace, stream_id, count(*), max(position)
  from unnest($1::text[], $2::text[], $3::bigint[]) as e (workspace, stream_id, position) group by 1, 2
  on conflict (workspace, stream_id) do update set events = c.events + excluded.events, last = excluded.last`;
const counts: ProjectionDefinition = {
  name: 'agent-spec-counts',
  service: 'agent',
  categories: ['session'],
  tables: [{ name: 'spec_counts' }],
  handle: async (client, events) => {
    await client.query(COUNT_SQL, [
      events.map(({ workspace }) => workspace),
      events.map(({ streamId }) => streamId),
      events.map(({ position }) => position),
    ]);
  },
};

interface Count {
  readonly stream_id: string;
  readonly events: string;
  readonly last: string;
}

const COUNTS_SQL = 'select stream_id, events, last from spec_counts order by stream_id';

let database: TestDatabase;
let admin: pg.Pool;
let pool: pg.Pool;
let store: EventStore & EventStorePg;
let past: PastReads;
let head: number;

const append = (workspace: string, streamId: string, events: number) =>
  store.append({ workspace, streams: [toStream(streamId, 'any', events)] });
const readCounts = (at: number, workspace = 'default') =>
  past.read(workspace, at, async (queries) =>
    (await queries.query<Count>(COUNTS_SQL)).rows.map((row) => ({ ...row })),
  );
/** Returns the process of the database that answers for a workspace's past. */
const pidOf = async (reads: PastReads, workspace: string): Promise<number> => {
  const { value } = await reads.read(workspace, head, (queries) =>
    queries.query<{ pid: number }>('select pg_backend_pid() as pid'),
  );
  return value.rows[0]!.pid;
};
/** Counts the events up to a position without the projection. */
const expected = async (at: number, workspace = 'default'): Promise<Count[]> =>
  (
    await admin.query<Count>(
      `select stream_id, count(*) as events, max(position) as last from events
       where workspace = $1 and category = 'session' and position <= $2 group by 1 order by 1`,
      [workspace, at],
    )
  ).rows;

beforeAll(async () => {
  database = await createTestDatabase();
  admin = createPool({ url: database.url, applicationName: 'spec' });
  await admin.query(`create table spec_counts (workspace text, stream_id text, events bigint not null, last bigint not null,
      primary key (workspace, stream_id));
    grant select, insert, update on spec_counts to antiphon_agent, antiphon_reader`);
  pool = createPool({ url: database.urlFor('agent'), applicationName: 'spec', max: 4 });
  store = createPostgresEventStore(pool);
  for (let n = 0; n < 90; n++)
    await append(n % 5 === 0 ? 'other' : 'default', `session-${n % 7}`, 1 + (n % 9));
  head = await store.headPosition();
  past = new PastReads({ pool, definitions: [counts], snapshotEvery: 20 });
});
afterAll(async () => {
  await past.close();
  await store.close();
  await Promise.all([pool.end(), admin.end()]);
  await database.drop();
});

describe('a read as of a position', () => {
  it('equals an independent fold of the log at any positions in any order', () =>
    fc.assert(
      fc.asyncProperty(fc.array(fc.integer({ min: 0, max: head }), { maxLength: 6 }), async (positions) => {
        for (const at of positions) {
          const { value, position } = await readCounts(at);
          expect([position, value]).toEqual([at, await expected(at)]);
        }
      }),
      { numRuns: 40 },
    ));

  it('sees only its own workspace, and changes no live row', async () => {
    const [own, other] = await Promise.all([readCounts(head), readCounts(head, 'other')]);
    expect([own.value, own.head]).toEqual([await expected(head), head]);
    expect(other.value).toEqual(await expected(head, 'other'));
    expect((await admin.query('select count(*)::int as rows from spec_counts')).rows).toEqual([{ rows: 0 }]);
  });

  it('may change nothing but its own tables', async () => {
    const write = past.read('default', head, (queries) =>
      queries.query('update public.spec_counts set events = 0'),
    );
    // read_only_sql_transaction
    await expect(write).rejects.toMatchObject({ cause: { code: '25006' } });
    expect((await readCounts(head)).value).toEqual(await expected(head));
  });

  it('follows the log as it grows, and is refused beyond the head', async () => {
    await append('default', 'session-new', 3);
    const grown = await store.headPosition();
    expect((await readCounts(grown)).value).toEqual(await expected(grown));
    await expect(readCounts(grown + 1)).rejects.toMatchObject({
      code: 'LOG.POSITION_AHEAD',
      data: { head: grown },
    });
  });

  it('opens a connection again after the loss of its own', async () => {
    const lost = await pidOf(past, 'default');
    const { rows } = await admin.query('select pg_terminate_backend($1) as done', [lost]);
    expect(rows).toEqual([{ done: true }]);
    expect((await readCounts(head)).value).toEqual(await expected(head));
    expect(await pidOf(past, 'default')).not.toBe(lost);
  });

  it('is refused while a long log is folded, and a later one continues from there', async () => {
    for (let n = 0; n < 8; n++) await append('long', 'session-long', 550);
    const end = await store.headPosition();
    const patient = new PastReads({ pool, definitions: [counts], foldMs: 0 });
    const read = () => patient.read('long', end, (queries) => queries.query<Count>(COUNTS_SQL));
    const refused = {
      ...{ code: 'LOG.PAST_NOT_READY', kind: 'transient', data: { retryAfterSeconds: 1 } },
      message: expect.stringMatching(/^the log is folded up to \d+ of \d+: try again$/),
    };
    await expect(read()).rejects.toMatchObject(refused);
    await expect(read()).rejects.toMatchObject(refused);
    expect((await read()).value.rows).toEqual(await expected(end, 'long'));
    await patient.close();
  });

  it('keeps tables over their bound for the repeat of a read that was refused or late', async () => {
    let time = 0;
    for (let n = 0; n < 8; n++) await append('late', 'session-late', 550);
    const options = { foldMs: 0, maxBytes: 0, maxWaitMs: 2_000, now: () => time };
    const patient = new PastReads({ pool, definitions: [counts], ...options });
    const end = await store.headPosition();
    const read = (ms: number) =>
      patient.read('late', end, (queries) => {
        time += ms;
        return queries.query<Count>(COUNTS_SQL);
      });
    const refused = { code: 'LOG.PAST_NOT_READY' };
    await expect(read(0)).rejects.toMatchObject(refused);
    await expect(read(0)).rejects.toMatchObject(refused);
    const late = await read(2_001);
    expect(late.value.rows).toEqual(await expected(end, 'late'));
    const kept = patient.bytes();
    expect((await read(0)).value.rows).toEqual(late.value.rows);
    await until(() => patient.bytes() < kept);
    await patient.close();
  });
});

describe('reads of the past that wait for others', () => {
  /** Begins a read that holds the tables until it is released. */
  const hold = async (busy: PastReads, at: number): Promise<() => Promise<unknown>> => {
    const [begun, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const held = busy.read('default', at, () => {
      begun.resolve();
      return released.promise;
    });
    await begun.promise;
    return () => {
      released.resolve();
      return held;
    };
  };
  /** Waits until reads that were begun now have read the head of the log, after which they wait. */
  const waiting = async (count: number): Promise<void> => {
    const all = Promise.withResolvers<void>();
    let left = count;
    const note = (): void => void (--left === 0 && all.resolve());
    pool.on('release', note);
    await all.promise;
    pool.off('release', note);
    await new Promise((resolve) => setImmediate(resolve));
  };

  it('are answered in the order of the log, so that one fold serves all of them', async () => {
    const busy = new PastReads({ pool, definitions: [counts] });
    const order: number[] = [];
    const readAt = (at: number) =>
      busy.read('default', at, async (queries) => {
        order.push(at);
        return (await queries.query<Count>(COUNTS_SQL)).rows;
      });
    const middle = Math.floor(head / 2);
    const release = await hold(busy, middle);
    const positions = [head, 1, middle + 2, middle - 3, middle + 1];
    const found = positions.map(readAt);
    await waiting(positions.length);
    await release();
    const rows = await Promise.all(found);
    expect(order).toEqual([middle + 1, middle + 2, head, 1, middle - 3]);
    for (const [index, at] of positions.entries()) expect(rows[index]?.value).toEqual(await expected(at));
    await busy.close();
  });

  it('are next after half of their time, so that none is put off by others for long', async () => {
    let time = 0;
    const busy = new PastReads({ pool, definitions: [counts], maxWaitMs: 2_000, now: () => time });
    const order: number[] = [];
    const release = await hold(busy, 5);
    const late = busy.read('default', 1, async () => void order.push(1));
    await waiting(1);
    time = 600;
    const ahead = busy.read('default', head, async () => void order.push(head));
    await waiting(1);
    time = 1_001;
    await release();
    await Promise.all([late, ahead]);
    expect(order).toEqual([1, head]);
    await busy.close();
  });

  it('are refused after their time, so that their work does not delay later reads', async () => {
    const busy = new PastReads({ pool, definitions: [counts], maxWaitMs: 20 });
    let release = (): void => undefined;
    const isHeld = new Promise<void>((resolve) => (release = resolve));
    let hasBegun = (): void => undefined;
    const begun = new Promise<void>((resolve) => (hasBegun = resolve));
    const first = busy.read('default', head, async (queries) => {
      hasBegun();
      await isHeld;
      return queries.query('select 1 as one');
    });
    await begun;
    let worked = 0;
    const waiting = Array.from({ length: 200 }, (_, index) =>
      busy.read('default', index % head, () => Promise.resolve(++worked)),
    );
    const outcomes = Promise.allSettled(waiting);
    await giveTimeToFail(500);
    release();
    expect((await first).value.rows).toEqual([{ one: 1 }]);
    for (const outcome of await outcomes)
      expect(outcome).toMatchObject({ status: 'rejected', reason: { code: 'LOG.PAST_NOT_READY' } });
    expect(worked).toBe(0);
    expect((await busy.read('default', head, () => Promise.resolve('later'))).value).toBe('later');
    await busy.close();
  });
});

describe('the connections of reads of the past', () => {
  it('close for the least recently used workspace, never one in use', async () => {
    const few = new PastReads({ pool, definitions: [counts], maxWorkspaces: 2 });
    const opened = new Set<number>();
    const pidIn = async (workspace: string): Promise<number> => {
      const pid = await pidOf(few, workspace);
      opened.add(pid);
      return pid;
    };
    const [first, second] = [await pidIn('a'), await pidIn('b')];
    expect(await pidIn('a')).toBe(first);
    await pidIn('c');
    // `b` was used before `a`, so that it left.
    expect([await pidIn('a'), (await pidIn('b')) === second]).toEqual([first, false]);
    let release = (): void => undefined;
    const isHeld = new Promise<void>((resolve) => (release = resolve));
    const held: string[] = [];
    const holding = ['a', 'b'].map((workspace) =>
      few.read(workspace, head, async (queries) => {
        held.push(workspace);
        await isHeld;
        return queries.query('select 1 as one');
      }),
    );
    while (held.length < 2) await new Promise((resolve) => setImmediate(resolve));
    await expect(pidIn('c')).rejects.toMatchObject({ code: 'LOG.PAST_NOT_READY' });
    release();
    for (const { value } of await Promise.all(holding)) expect(value.rows).toEqual([{ one: 1 }]);
    await pidIn('c');
    await few.close();
    const left = async () =>
      (await admin.query('select from pg_stat_activity where pid = any ($1)', [[...opened]])).rowCount;
    while ((await left()) !== 0) await new Promise((resolve) => setImmediate(resolve));
  });
});
