import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createPool, inWorkspace } from '@antiphon/database';
import { createTestDatabase } from '@antiphon/testing';
import type { TestDatabase } from '@antiphon/testing';
import type pg from 'pg';
import { readEventPage, type EventPage } from './read-event-page.js';
import { READS_ALL } from './shown-events.js';
import { searchText, textSearchSql } from './text-search.js';

const MIB = 2 ** 20;
/** Events of 1 kB in two workspaces, and after them events of 1 MB, of which two have a text. */
const SMALL = 20_000;
const LARGE = 160;
const FILL_SQL = `insert into events (position, workspace, category, stream_id, stream_version, event_id, type,
    schema_version, data, metadata, recorded_at, hash)
  select n, case when n % 6 = 0 then 'other' else 'long' end, 'session', 'session-' || n / 100, n % 100 + 1,
    gen_random_uuid(), 'TurnRequested', 1, jsonb_build_object('n', n, 'content', repeat(md5(n::text), 31)), '{}', now(), ''
  from generate_series(1, ${SMALL}) n`;
const FILL_LARGE_SQL = `insert into events (position, workspace, category, stream_id, stream_version, event_id, type,
    schema_version, data, metadata, recorded_at, hash)
  select ${SMALL} + n, 'long', 'session', 'session-large', n, gen_random_uuid(), 'TurnRequested', 1,
    jsonb_build_object('content', repeat('漢', 333000) || case when n % 70 = 0 then 'Needle' else '' end), '{}', now(), ''
  from generate_series(1, ${LARGE}) n`;
const END = SMALL + LARGE;

let database: TestDatabase;
let pool: pg.Pool;
beforeAll(async () => {
  database = await createTestDatabase();
  const admin = createPool({ url: database.url, applicationName: 'spec', statementTimeoutMs: 120_000 });
  await admin.query(FILL_SQL);
  await admin.query(FILL_LARGE_SQL);
  await admin.query('analyze events');
  const { rows } = await admin.query<{ position: string; bytes: number }>(
    `select position, octet_length(data::text) as bytes from events where workspace = 'long'`,
  );
  sizes = rows.map(({ position, bytes }) => ({ position: Number(position), bytes }));
  await admin.end();
  pool = createPool({ url: database.urlFor('gateway'), applicationName: 'spec' });
}, 180_000);
afterAll(async () => {
  await pool.end();
  await database.drop();
});

type Query = Parameters<typeof readEventPage>[2];

/** Follows the cursors of a search to its end. */
const readAll = async (query: Query): Promise<EventPage[]> => {
  const pages: EventPage[] = [];
  for (let cursor: string | null | undefined; cursor !== null;) {
    const page = await readEventPage(pool, 'long', { ...query, ...(cursor ? { cursor } : {}) }, READS_ALL);
    pages.push(page);
    cursor = page.nextCursor;
  }
  return pages;
};
let sizes: readonly { readonly position: number; readonly bytes: number }[];
const bytesBetween = (after: number, upTo: number): number =>
  sizes
    .filter(({ position }) => position > after && position <= upTo)
    .reduce((sum, { bytes }) => sum + bytes, 0);

describe('a search of a text', () => {
  // @shows review2-7-text-searches
  it.each(['asc', 'desc'] as const)(
    `reads 128 MiB of ${END} events without a hit in one request, and all of them by its cursors, in order %s`,
    async (order) => {
      const pages = await readAll({ text: 'not there', limit: 100, order });
      expect(pages.flatMap(({ events }) => events)).toEqual([]);
      expect(pages.length).toBeGreaterThan(1);
      const ends = pages.map(({ searchedTo }) => searchedTo);
      expect(ends.at(-1)).toBe(order === 'asc' ? END : 0);
      let from = order === 'asc' ? 0 : END;
      for (const to of ends) {
        expect(Math.sign(to - from)).toBe(order === 'asc' ? 1 : -1);
        expect(bytesBetween(Math.min(from, to), Math.max(from, to))).toBeLessThan(128 * MIB);
        from = to;
      }
    },
    120_000,
  );

  it.each(['asc', 'desc'] as const)('finds every hit once over its pages, in order %s', async (order) => {
    for (const [text, expected] of [
      ['needle', [SMALL + 70, SMALL + 140]],
      ['"n": 11', [11, 110, 111, 112, 113, 115, 116, 117, 118]],
    ] as const) {
      const query = text === 'needle' ? { text } : { text, at: 118 };
      const pages = await readAll({ ...query, limit: 1, order });
      const found = pages.flatMap(({ events }) => events.map(({ position }) => position));
      expect(found).toEqual(order === 'asc' ? expected : expected.toReversed());
    }
  });

  it('refuses an offset over a log that one request does not read, and takes it over a small one', async () => {
    await expect(
      readEventPage(pool, 'long', { text: 'needle', offset: 1, limit: 1 }, READS_ALL),
    ).rejects.toMatchObject({ code: 'GATEWAY.INVALID_QUERY' });
    const small = { text: '"n": 11', at: 118, offset: 2, limit: 2 };
    const page = await readEventPage(pool, 'long', small, READS_ALL);
    expect(page.events.map(({ position }) => position)).toEqual([111, 112]);
  });

  it('reads at most 64 MiB of compressed events in one statement, and writes no temporary file', async () => {
    const search = {
      ...{ workspace: 'long', query: { limit: 10 }, sought: 'not there', limit: 10 },
      ...{ range: { after: SMALL, upTo: END }, streams: null, categories: null },
    };
    const step = await searchText(inWorkspace(pool, 'long'), search);
    expect(step.reached).toBeGreaterThan(SMALL + 40);
    expect(step.bytes).toBeGreaterThan(40 * MIB);
    expect(step.bytes).toBeLessThanOrEqual(65 * MIB);
    const { text, values } = textSearchSql({ ...search, range: { after: 0, upTo: 10_000 } });
    const plan = await inWorkspace(pool, 'long').query(
      `explain (analyze, buffers, format json) ${text}`,
      values,
    );
    expect(JSON.stringify(plan.rows)).not.toMatch(/"Temp (Read|Written) Blocks": [1-9]/);
    expect(JSON.stringify(plan.rows)).not.toContain('Seq Scan');
  });
});
