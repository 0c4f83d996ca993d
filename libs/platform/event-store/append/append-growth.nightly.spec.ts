import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { createPool } from '@antiphon/database';
import { createTestDatabase, newEvent } from '@antiphon/testing';
import type { TestDatabase } from '@antiphon/testing';
import { archiveEvents } from '../archive/archive-log.js';
import type { EventStore } from '../event-store.port.js';
import { createPostgresEventStore } from '../postgres-event-store.js';

jest.setTimeout(3_600_000);

const SMALL = 100_000;
const LARGE = 10_000_000;
/** Events of one stream; a session of a few turns. */
const LENGTH = 20;
const ROUNDS = 12;
const EACH = 100;
const RULES = [{ category: 'session', keeps: null, pairs: [{ begins: ['Begun'], ends: ['Ended'] }] }];

interface Grown {
  readonly rows: number;
  readonly database: TestDatabase;
  readonly admin: pg.Client;
  readonly pool: pg.Pool;
  readonly store: EventStore & { close(): Promise<void> };
}

/** Ids that grow with time, as ours do, so that what is near in time is near in the index. */
const STREAM = `'session-0192f0c1-' || lpad(to_hex(((n - 1) / ${LENGTH})::bigint), 12, '0')`;

/** Written past the sequencer, in this database of its own: what is measured is what comes after. */
const fill = async (admin: pg.Client, rows: number): Promise<void> => {
  await admin.query(
    `drop index events_event_id_key, events_stream_key; alter table events drop constraint events_pkey`,
  );
  for (let from = 1; from <= rows; from += 500_000)
    await admin.query(`insert into events
      select n, 'default', 'session', ${STREAM}, (n - 1) % ${LENGTH} + 1, uuidv7(), 'Noted', 1,
        jsonb_build_object('turnId', md5(n::text), 'text', repeat(md5((n * 7)::text), 6)),
        '{"correlationId":"bench","service":"agent"}', now() - interval '1 day', sha256(n::text::bytea)
      from generate_series(${from}, ${Math.min(rows, from + 499_999)}) n`);
  await admin.query(`alter table events add constraint events_pkey primary key (position);
    create unique index events_event_id_key on events (event_id);
    create unique index events_stream_key on events (workspace, stream_id, stream_version)`);
  await admin.query(`insert into stream_heads select 'default', ${STREAM}, ${LENGTH}, sha256(n::text::bytea)
    from generate_series(${LENGTH}, ${rows}, ${LENGTH}) n`);
  await admin.query('vacuum analyze');
  await admin.query('checkpoint');
};

const grow = async (rows: number): Promise<Grown> => {
  const database = await createTestDatabase();
  const admin = new pg.Client({ connectionString: database.url });
  await admin.connect();
  await fill(admin, rows);
  const pool = createPool({ url: database.urlFor('agent'), applicationName: 'spec-growth', max: 4 });
  return { rows, database, admin, pool, store: createPostgresEventStore(pool) };
};

const quantile = (sorted: readonly number[], q: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))] ?? 0;
const milliseconds = async (work: () => Promise<unknown>): Promise<number> => {
  const begun = performance.now();
  await work();
  return performance.now() - begun;
};
const said: string[] = [];
const say = (line: string): void => void said.push(line);

/** One new stream, and one of the old ones, anywhere in the log. */
const appendOnce = async ({ store, rows }: Grown, seed: number): Promise<number> => {
  const old = Math.floor(((seed * 0.618_033_988_7) % 1) * (rows / LENGTH));
  const existing = `session-0192f0c1-${old.toString(16).padStart(12, '0')}`;
  const streamId = seed % 2 === 0 ? `session-${randomUUID()}` : existing;
  const streams = [
    { streamId, expectedVersion: 'any' as const, events: [newEvent({ text: 'x'.repeat(200) })] },
  ];
  return milliseconds(() => store.append({ workspace: 'default', streams }));
};

describe('the log as it grows', () => {
  let small: Grown;
  let large: Grown;
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'antiphon-growth-'));
    small = await grow(SMALL);
    say(
      `${LARGE} rows filled in ${Math.round((await milliseconds(async () => void (large = await grow(LARGE)))) / 1_000)} s`,
    );
  });
  afterAll(async () => {
    process.stdout.write(`\n${said.join('\n')}\n`);
    for (const grown of [small, large]) {
      await grown?.store.close();
      await grown?.pool.end();
      await grown?.admin.end();
      await grown?.database.drop();
    }
    await rm(folder, { recursive: true });
  });

  it('takes an event as fast at 10⁷ rows as at 10⁵', async () => {
    const times = new Map<Grown, number[]>([
      [small, []],
      [large, []],
    ]);
    // In turns, so that what else the machine does meets both.
    const measure = async (grown: Grown, all: number[], round: number): Promise<void> => {
      for (let n = 0; n < EACH; n++) {
        const took = await appendOnce(grown, round * EACH + n);
        if (round > 0) all.push(took);
      }
    };
    for (let round = 0; round <= ROUNDS; round++)
      for (const [grown, all] of times) await measure(grown, all, round);
    const [few, many] = [small, large].map((grown) => (times.get(grown) ?? []).toSorted((a, b) => a - b)) as [
      number[],
      number[],
    ];
    for (const [name, sorted] of [
      ['10^5', few],
      ['10^7', many],
    ] as const)
      say(
        `append at ${name} rows: p50 ${quantile(sorted, 0.5).toFixed(2)} ms, p99 ${quantile(sorted, 0.99).toFixed(2)} ms (n = ${sorted.length})`,
      );
    expect(quantile(many, 0.5)).toBeLessThan(2 * quantile(few, 0.5) + 1);
  });

  it('says what its indexes take', async () => {
    for (const { admin, rows } of [small, large]) {
      const { rows: sizes } = await admin.query<{ name: string; size: string }>(
        `select relname as name, pg_size_pretty(pg_relation_size(oid)) as size from pg_class
         where relname in ('events', 'events_pkey', 'events_event_id_key', 'events_stream_key', 'stream_heads', 'stream_heads_pkey') order by relname`,
      );
      say(`sizes at ${rows} rows: ${sizes.map(({ name, size }) => `${name} ${size}`).join(', ')}`);
    }
  });

  it('lets a million events leave by files, while others append, and by a partition for comparison', async () => {
    const before = { position: 1_000_000 };
    let left = 0;
    const appended: number[] = [];
    let archiving = true;
    const appending = (async () => {
      for (let n = 0; archiving; n++) appended.push(await appendOnce(large, 2 * n));
    })();
    let bytes = 0;
    const took = await milliseconds(async () => {
      while (left < 1_000_000) {
        const made = await archiveEvents({ pool: large.pool, folder, rules: RULES, before });
        if (made === null) break;
        left += made.events;
        bytes += (await stat(join(folder, made.file))).size;
      }
    });
    archiving = false;
    await appending;
    const sorted = appended.toSorted((a, b) => a - b);
    say(
      `archived ${left} events in ${(took / 1_000).toFixed(1)} s (${Math.round(left / (took / 1_000))}/s), ${Math.round(bytes / left)} bytes each in its file; appends meanwhile: p50 ${quantile(sorted, 0.5).toFixed(2)} ms, p99 ${quantile(sorted, 0.99).toFixed(2)} ms, max ${sorted.at(-1)?.toFixed(0)} ms (n = ${sorted.length})`,
    );
    say(
      `vacuum after it: ${((await milliseconds(() => large.admin.query('vacuum events'))) / 1_000).toFixed(1)} s`,
    );
    expect(left).toBeGreaterThan(900_000);

    const { admin } = large;
    await admin.query(`create table parted (like events) partition by range (position)`);
    for (const part of [1, 2])
      await admin.query(
        `create table parted_${part} partition of parted for values from (${part}000000) to (${part + 1}000000)`,
      );
    await admin.query(
      `create unique index on parted (position); create index on parted (event_id); create index on parted (workspace, stream_id, stream_version)`,
    );
    await admin.query(
      `insert into parted select * from events where position >= 1000000 and position < 3000000`,
    );
    say(
      `delete of a million rows: ${((await milliseconds(() => admin.query('delete from parted where position < 2000000'))) / 1_000).toFixed(1)} s`,
    );
    say(
      `drop of a partition of a million rows: ${(await milliseconds(() => admin.query('drop table parted_2'))).toFixed(0)} ms`,
    );
  });
});
