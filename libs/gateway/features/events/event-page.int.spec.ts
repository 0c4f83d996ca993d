import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type pg from 'pg';
import { createPool, inWorkspace } from '@antiphon/database';
import { createTestDatabase } from '@antiphon/testing';
import type { TestDatabase } from '@antiphon/testing';
import { FIRST_AT_SQL, positionsSql } from './event-page.js';
import { readEventPage } from './read-event-page.js';
import { READS_ALL } from './shown-events.js';

const EVENTS = 60_000;
/** Inserted directly, because appending 60,000 events takes long and only the plans are tested. */
const FILL_SQL = `insert into events (position, workspace, category, stream_id, stream_version, event_id, type, schema_version,
    data, metadata, recorded_at, hash)
  select n, case when n % 7 = 0 then 'other' else 'default' end, 'session', 'session-' || (n / 100), n % 100 + 1,
    gen_random_uuid(),
    case when n % 20000 = 77 then 'TurnFailed' when n % 100 = 0 then 'SessionStarted' else 'TurnRequested' end, 1,
    case when n % 100 = 0 then jsonb_build_object('agentId', 'agent-' || (n / 100 % 300)) else '{}' end, '{}',
    timestamptz '2026-01-01' + n * interval '1 second', ''
  from generate_series(1, ${EVENTS}) n`;

const READER = fileURLToPath(new URL('fixtures/read-events.mjs', import.meta.url));
/** More than the process that reads them may use; 300 at night. */
const BIG_EVENTS = Number(process.env['ANTIPHON_BIG_EVENTS'] ?? 140);
/** Events of 1 MB: text that does not compress, and text that does. */
const FILL_BIG_SQL = `insert into events (position, workspace, category, stream_id, stream_version, event_id, type,
    schema_version, data, metadata, recorded_at, hash)
  select ${EVENTS} + n, 'big', 'session', 'session-big', n, gen_random_uuid(), 'TurnRequested', 1,
    jsonb_build_object('content', case when n % 2 = 0 then repeat('漢', 333000) else odd.text end), '{}', now(), ''
  from generate_series($1::bigint, $2) n,
    (select string_agg(md5(i::text), '') as text from generate_series(1, 31250) i) odd`;
const BATCH = 20;

let database: TestDatabase;
let pool: pg.Pool;
beforeAll(async () => {
  database = await createTestDatabase();
  const admin = createPool({ url: database.url, applicationName: 'spec' });
  await admin.query(FILL_SQL);
  for (let n = 1; n <= BIG_EVENTS; n += BATCH) await admin.query(FILL_BIG_SQL, [n, n + BATCH - 1]);
  await admin.query('analyze events');
  await admin.end();
  pool = createPool({ url: database.urlFor('gateway'), applicationName: 'spec' });
}, 120_000);
afterAll(async () => {
  await pool.end();
  await database.drop();
});

const explain = async (text: string, values: unknown[]): Promise<string> => {
  const { rows } = await inWorkspace(pool, 'default').query(`explain (format json) ${text}`, values);
  return JSON.stringify(rows);
};

describe('readEventPage', () => {
  const WINDOW = { after: 10_000, upTo: 20_000 };
  const ALL = { after: 0, upTo: null };

  it.each([
    ['of a rare type', { type: 'TurnFailed', limit: 100 }, ALL, 'events_rare_type_idx'],
    ['of errors', { severity: 'error' as const, limit: 100 }, ALL, 'events_rare_type_idx'],
    ['of a stream', { stream: 'session-7', limit: 100 }, ALL, 'events_stream_key'],
    ['of a frequent type', { type: 'TurnRequested', limit: 100 }, WINDOW, 'events_pkey'],
    ['from a cursor on', { limit: 100 }, WINDOW, 'events_pkey'],
  ])('reads events %s by an index, without a sequential scan', async (_what, query, range, index) => {
    const { text, values } = positionsSql('default', query, range, query.limit);
    const plan = await explain(text, values);
    expect(plan).toContain(index);
    expect(plan).not.toContain('Seq Scan');
  });

  it.each([{}, { type: 'TurnRequested' }])(
    'reads the end of a stream with %j in the order of its index',
    async (more) => {
      const query = { stream: 'session-7', order: 'desc' as const, limit: 100, ...more };
      const { text, values } = positionsSql('default', query, ALL, query.limit);
      const plan = await explain(text, values);
      expect(plan).toContain('events_stream_key');
      expect(plan).not.toContain('Sort');
    },
  );

  it('finds the first event of a time by an index, without a sequential scan', async () => {
    const plan = await explain(FIRST_AT_SQL, ['default', '2026-01-01T05:00:00Z', '2026-01-01T05:01:00Z']);
    expect(plan).toContain('events_recorded_at_idx');
    expect(plan).not.toContain('Seq Scan');
  });

  const positionsOf = async (query: Parameters<typeof readEventPage>[2], workspace = 'default') => {
    const { events, nextCursor } = await readEventPage(pool, workspace, query, READS_ALL);
    return { positions: events.map(({ position }) => position), nextCursor };
  };

  it('returns matching events of its own workspace only, in order', async () => {
    const page = await positionsOf({ type: 'TurnFailed', limit: 2 });
    expect(page).toEqual({ positions: [20_077, 40_077], nextCursor: null });
  });

  it('returns the newest events first, in pages without a gap, up to a position and after another', async () => {
    const bounds = { at: 50_000, after: 49_950, order: 'desc' as const, limit: 7 };
    const expected = Array.from({ length: 50 }, (_, n) => 50_000 - n).filter((n) => n % 7 !== 0);
    const seen: number[] = [];
    for (let cursor: string | undefined, round = 0; round < 10; round++) {
      const page = await readEventPage(pool, 'default', { ...bounds, cursor }, READS_ALL);
      expect([page.position, page.head]).toEqual([50_000, EVENTS + BIG_EVENTS]);
      seen.push(...page.events.map(({ position }) => position));
      if (page.nextCursor === null) break;
      cursor = page.nextCursor;
    }
    expect(seen).toEqual(expected);
    const failed = await positionsOf({ type: 'TurnFailed', order: 'desc', limit: 2 });
    expect(failed.positions).toEqual([40_077, 20_077]);
    const last = await positionsOf({ order: 'desc', limit: 1 });
    expect(last.positions).toEqual([EVENTS - (EVENTS % 7 === 0 ? 1 : 0)]);
  });

  it('filters by several types, by types to leave out, and by text', async () => {
    const types = await positionsOf({ type: 'TurnFailed,SessionStarted', after: 20_000, limit: 3 });
    expect(types.positions).toEqual([20_077, 20_100, 20_200]);
    const others = await positionsOf({ excludeType: 'TurnRequested,SessionStarted', limit: 9 });
    expect(others.positions).toEqual([20_077, 40_077]);
    const text = await positionsOf({ text: 'AGENT-299"', order: 'desc', after: 50_000, limit: 5 });
    expect(text.positions).toEqual([59_900]);
    await expect(positionsOf({ at: EVENTS + BIG_EVENTS + 1, limit: 1 })).rejects.toMatchObject({
      code: 'LOG.POSITION_AHEAD',
    });
  });

  it('finds the events of an agent over the windows of a long log', async () => {
    const { positions } = await positionsOf({ agent: 'agent-299', limit: 1_000 });
    const expected = [299, 599].flatMap((stream) =>
      Array.from({ length: 100 }, (_, nth) => stream * 100 + nth).filter((n) => n % 7 !== 0),
    );
    // Streams whose first event is of another workspace have no agent here.
    const visible = expected.filter((n) => (Math.floor(n / 100) * 100) % 7 !== 0);
    expect(positions).toEqual(visible);
    // A search that takes longer than a second continues with its cursor.
    for (let cursor: string | null | undefined; cursor !== null;) {
      const page = await positionsOf({ agent: 'unknown', limit: 10, ...(cursor ? { cursor } : {}) });
      expect(page.positions).toEqual([]);
      cursor = page.nextCursor;
    }
  });

  it('returns the events of a time, and pages them by limit, offset and cursor', async () => {
    const since = '2026-01-01T12:00:00Z';
    const until = '2026-01-01T12:00:20Z';
    const expected = Array.from({ length: 20 }, (_, nth) => 43_200 + nth).filter((n) => n % 7 !== 0);
    expect(await positionsOf({ since, until, limit: 100 })).toEqual({
      positions: expected,
      nextCursor: null,
    });
    const first = await positionsOf({ since, until, limit: 5 });
    expect(first.positions).toEqual(expected.slice(0, 5));
    const rest = await positionsOf({ since, until, limit: 100, cursor: first.nextCursor ?? '' });
    expect(rest).toEqual({ positions: expected.slice(5), nextCursor: null });
    const skipped = await positionsOf({ since, until, limit: 100, offset: 7 });
    expect(skipped.positions).toEqual(expected.slice(7));
    expect(await positionsOf({ since: '2030-01-01T00:00:00Z', limit: 5 })).toEqual({
      positions: [],
      nextCursor: null,
    });
  });

  it('searches no window of the log for a time without events', async () => {
    let queries = 0;
    const count = (): void => void (queries += 1);
    pool.on('acquire', count);
    const query = { type: 'TurnRequested', since: '2030-01-01T00:00:00Z', limit: 5 };
    const found = await positionsOf(query);
    pool.off('acquire', count);
    expect(found).toEqual({ positions: [], nextCursor: null });
    // The head, and the position after the end. There are six windows.
    expect(queries).toBeLessThanOrEqual(4);
  });

  it(`reads pages of at most 4 MiB over ${BIG_EVENTS} events of 1 MB in a process with a heap of 96 MiB`, async () => {
    const run = promisify(execFile)(
      process.execPath,
      ['--max-old-space-size=96', READER, database.urlFor('gateway'), 'big'],
      { env: { PATH: process.env['PATH'] } },
    );
    const { events, pages, largest, peakMiB } = JSON.parse((await run).stdout) as Record<string, number>;
    expect(events).toBe(BIG_EVENTS);
    expect(largest).toBeLessThanOrEqual(4.5 * 1024 * 1024);
    expect(pages).toBeLessThanOrEqual(BIG_EVENTS / 2);
    // Resident memory, with buffers that are not collected yet; a container has 512 MiB.
    expect(peakMiB).toBeLessThan(512);
  }, 120_000);

  it('refuses a cursor that it did not issue', () =>
    expect(positionsOf({ limit: 1, cursor: randomUUID() })).rejects.toMatchObject({
      code: 'GATEWAY.INVALID_CURSOR',
    }));
});
