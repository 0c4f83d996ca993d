import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { createPool } from '@antiphon/database';
import { createTestDatabase } from '@antiphon/testing';
import type { TestDatabase } from '@antiphon/testing';

const AUDIT = fileURLToPath(new URL('fixtures/audit-log.mjs', import.meta.url));
const BIG_EVENTS = Number(process.env['ANTIPHON_BIG_EVENTS'] ?? 120);
/** Bound of the nightly run. Fewer events than these fit below it, also if all are kept. */
const MAX_RESIDENT_MIB = BIG_EVENTS >= 300 ? 400 : Infinity;
/** Small events, and after them events of 1 MB: half of them have a text that compresses. */
const FILL_SQL = `insert into events (position, workspace, category, stream_id, stream_version, event_id, type,
    schema_version, data, metadata, recorded_at, hash)
  select $1 + n, 'default', 'session', 'session-big', $1 + n, gen_random_uuid(), 'TurnRequested', 1,
    jsonb_build_object('turnId', gen_random_uuid(), 'content', case when $3 then 'hi'
      when n % 2 = 0 then repeat('漢', 333000) else odd.text end), '{}', now(), ''
  from generate_series(1, $2) n,
    (select string_agg(md5(i::text), '') as text from generate_series(1, 31250) i) odd`;
const SMALL_EVENTS = 200;
const BATCH = 20;

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
  const admin = createPool({ url: database.url, applicationName: 'spec', statementTimeoutMs: 60_000 });
  await admin.query(FILL_SQL, [0, SMALL_EVENTS, true]);
  for (let n = 0; n < BIG_EVENTS; n += BATCH)
    await admin.query(FILL_SQL, [SMALL_EVENTS + n, Math.min(BATCH, BIG_EVENTS - n), false]);
  await admin.end();
}, 120_000);
afterAll(() => database?.drop());

describe('an audit', () => {
  // @shows review2-13-pages-in-bytes
  it(`reads ${BIG_EVENTS} events of 1 MB in a process with a heap of 96 MiB`, async () => {
    const { stdout } = await promisify(execFile)(
      process.execPath,
      ['--max-old-space-size=96', AUDIT, database.urlFor('reader')],
      { env: { PATH: process.env['PATH'] } },
    );
    const { events, peakMiB } = JSON.parse(stdout) as Record<string, number>;
    expect(events).toBe(SMALL_EVENTS + BIG_EVENTS);
    // The heap is the first bound: the process ends where it keeps the events. This one is for
    // buffers outside of it, which the part `large-events` of the nightly run measures.
    expect(peakMiB).toBeLessThan(MAX_RESIDENT_MIB);
  }, 120_000);
});
