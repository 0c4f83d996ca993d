import { afterAll, beforeAll, expect, it, jest } from '@jest/globals';
import { createPool } from '@antiphon/database';
import { createTestDatabase, type TestDatabase, until } from '@antiphon/testing';
import type pg from 'pg';
import { DatabaseClock } from './database-clock.js';

const HOUR_MS = 3_600_000;

let database: TestDatabase;
let pool: pg.Pool;
beforeAll(async () => {
  database = await createTestDatabase();
  pool = createPool({ url: database.urlFor('metering'), applicationName: 'spec' });
});
afterAll(async () => {
  await pool.end();
  await database.drop();
});

const serverTime = async (): Promise<number> => {
  const sql = 'select extract(epoch from clock_timestamp()) * 1000 as ms';
  return Number((await pool.query<{ ms: string }>(sql)).rows[0]?.ms);
};

it("follows PostgreSQL's clock when the process's clock is wrong", async () => {
  const rightNow = Date.now.bind(Date);
  const wrong = jest.spyOn(Date, 'now').mockImplementation(() => rightNow() + HOUR_MS);
  const clock = await DatabaseClock.open(pool);
  const before = await serverTime();
  const now = clock.now();
  const after = await serverTime();
  wrong.mockRestore();
  expect(now).toBeGreaterThan(before - 500);
  expect(now).toBeLessThan(after + 500);
});

it('is unavailable at the start without a database', async () => {
  const gone = createPool({ url: 'postgres://u:p@127.0.0.1:1/x', applicationName: 'spec-gone' });
  await expect(DatabaseClock.open(gone)).rejects.toMatchObject({ code: 'LOG.UNAVAILABLE' });
  await gone.end();
});

/** Lets the process's monotonic clock jump, so that the last read is too old. */
const jump = (ms: number) => {
  const steady = performance.now.bind(performance);
  return jest.spyOn(performance, 'now').mockImplementation(() => steady() + ms);
};

it("returns to PostgreSQL's time after a refresh, when the process's monotonic clock has jumped", async () => {
  const clock = await DatabaseClock.open(pool);
  const jumped = jump(11_000);
  try {
    expect(clock.now() - (await serverTime())).toBeGreaterThan(10_000);
    await until(async () => Math.abs(clock.now() - (await serverTime())) < 500);
  } finally {
    jumped.mockRestore();
  }
});

it('keeps its last offset when a refresh finds no database, and rejects nothing', async () => {
  const own = createPool({ url: database.urlFor('metering'), applicationName: 'spec-own' });
  const clock = await DatabaseClock.open(own);
  await own.end();
  const query = jest.spyOn(own, 'query');
  const jumped = jump(11_000);
  try {
    for (let n = 0; n < 5; n++) {
      const ahead = clock.now() - (await serverTime());
      expect(Math.abs(ahead - 11_000)).toBeLessThan(500);
    }
    // The failed refresh is repeated only once the offset is too old again.
    expect(query).toHaveBeenCalledTimes(1);
  } finally {
    jumped.mockRestore();
  }
});
