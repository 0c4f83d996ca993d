import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type pg from 'pg';
import { createPool } from '@antiphon/database';
import { createLogReader, verifyChain } from '@antiphon/event-store';
import { createTestDatabase, type TestDatabase } from '@antiphon/testing';

const HAMMER = fileURLToPath(new URL('fixtures/hammer.mjs', import.meta.url));
const STREAMS = 12;
const APPENDS = 40;
const WRITERS = 16;

const hammer = async (url: string): Promise<Record<string, number>> => {
  const { stdout } = await promisify(execFile)(
    process.execPath,
    [HAMMER, url, String(STREAMS), String(APPENDS)],
    {
      env: { PATH: process.env['PATH'] },
    },
  );
  return JSON.parse(stdout) as Record<string, number>;
};

describe('two processes that append to the same streams', () => {
  let database: TestDatabase;
  let pool: pg.Pool;
  beforeAll(async () => {
    database = await createTestDatabase();
    pool = createPool({ url: database.url, applicationName: 'spec' });
  }, 60_000);
  afterAll(async () => {
    await pool.end();
    await database.drop();
  }, 60_000);

  it('never deadlock, and write contiguous versions, gapless positions and intact chains', async () => {
    const outcomes = await Promise.all([hammer(database.urlFor('agent')), hammer(database.urlFor('agent'))]);
    for (const one of outcomes) {
      expect(
        Object.keys(one).filter((name) => name !== 'appended' && name !== 'LOG.VERSION_CONFLICT'),
      ).toEqual([]);
      expect(Object.values(one).reduce((sum, count) => sum + count, 0)).toBe(WRITERS * APPENDS);
      expect(one['appended']).toBeGreaterThan(WRITERS * APPENDS * 0.75);
    }
    const events = await createLogReader(pool).readLog({ after: 0, limit: 100_000 });
    expect(events.map(({ position }) => position)).toEqual(events.map((_, index) => index + 1));
    for (const stream of Map.groupBy(events, ({ streamId }) => streamId).values())
      expect(verifyChain(stream)).toMatchObject({ isIntact: true, version: stream.length });
    const { rows } = await pool.query<{ deadlocks: string }>(
      'select deadlocks from pg_stat_database where datname = current_database()',
    );
    expect(Number(rows[0]?.deadlocks)).toBe(0);
  });
});
