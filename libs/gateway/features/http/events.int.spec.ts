import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type pg from 'pg';
import { createPool } from '@antiphon/database';
import { createTestDatabase } from '@antiphon/testing';
import type { TestDatabase } from '@antiphon/testing';
import { eventPageSql, readEventPage } from './events.controller.js';

const EVENTS = 60_000;
/** Inserted directly, because appending 60,000 events takes long and only the plans are tested. */
const FILL_SQL = `insert into events (position, workspace, category, stream_id, stream_version, event_id, type, schema_version,
    data, metadata, recorded_at, hash)
  select n, case when n % 7 = 0 then 'other' else 'default' end, 'session', 'session-' || (n / 100), n % 100 + 1,
    gen_random_uuid(), case when n % 20000 = 77 then 'TurnFailed' else 'TurnRequested' end, 1, '{}', '{}',
    timestamptz '2026-01-01' + n * interval '1 second', ''
  from generate_series(1, ${EVENTS}) n`;

describe('readEventPage', () => {
  let database: TestDatabase;
  let pool: pg.Pool;
  beforeAll(async () => {
    database = await createTestDatabase();
    const admin = createPool({ url: database.url, applicationName: 'spec' });
    await admin.query(FILL_SQL);
    await admin.query('analyze events');
    await admin.end();
    pool = createPool({ url: database.urlFor('gateway'), applicationName: 'spec' });
  }, 60_000);
  afterAll(async () => {
    await pool.end();
    await database.drop();
  });

  const planOf = async (query: Parameters<typeof eventPageSql>[1]): Promise<string> => {
    const { text, values } = eventPageSql('default', query);
    const { rows } = await pool.query(`explain (format json) ${text}`, values);
    return JSON.stringify(rows);
  };

  it.each([
    ['of a rare type', { type: 'TurnFailed', limit: 100 }, 'events_rare_type_idx'],
    ['of errors', { severity: 'error' as const, limit: 100 }, 'events_rare_type_idx'],
    ['of a stream', { stream: 'session-7', limit: 100 }, 'events_stream_key'],
    [
      'of a time',
      { until: '2026-01-01T00:02:00Z', since: '2026-01-01T00:01:00Z', limit: 100 },
      'events_recorded_at_idx',
    ],
    ['from a cursor on', { limit: 100 }, 'events_pkey'],
  ])('reads events %s by an index, without a sequential scan', async (_what, query, index) => {
    const plan = await planOf(query);
    expect(plan).toContain(index);
    expect(plan).not.toContain('Seq Scan');
  });

  it('returns matching events of its own workspace only, in order', async () => {
    const { events, nextCursor } = await readEventPage(pool, 'default', { type: 'TurnFailed', limit: 2 });
    expect(events.map((event) => (event as { position: number }).position)).toEqual([20_077, 40_077]);
    expect(nextCursor).toBeNull();
  });
});
