import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { createPool } from '@antiphon/database';
import { createPostgresEventStore } from '@antiphon/event-store';
import type { EventStore, EventStorePg } from '@antiphon/event-store';
import { createTestDatabase, freshStream, toStream, type TestDatabase } from '@antiphon/testing';
import { letTimePass } from '@antiphon/testing/waits';
import type pg from 'pg';

jest.setTimeout(90_000);

/** An append waits five seconds for a lock, so that one is refused in this time. */
const LOCKED_MS = 6_000;
const CONTROL_MS = 1_000;
const SESSIONS = 5;
/**
 * Share of the rate before and after the lock. A quiet machine shows over 0.8. A batch that waits
 * for the lock shows under 0.01. Other specs run at the same time, which explains the distance.
 */
const LEAST_SHARE = 0.2;
const WORKSPACE = 'w';

let database: TestDatabase;
let pool: pg.Pool;
let admin: pg.Pool;
let store: EventStore & EventStorePg;
beforeAll(async () => {
  database = await createTestDatabase();
  pool = createPool({ url: database.urlFor('agent'), applicationName: 'spec' });
  admin = createPool({ url: database.url, applicationName: 'spec-lock', idleInTransactionMs: 60_000 });
  store = createPostgresEventStore(pool);
});
afterAll(async () => {
  await store.close();
  await Promise.all([pool.end(), admin.end()]);
  await database.drop();
});

const append = (streamId: string, expected: number | 'any' = 'any') =>
  store.append({ workspace: WORKSPACE, streams: [toStream(streamId, expected)] });

/** Locks a stream's head, as a suspended process does, while `work` runs. */
const whileLocked = async <T>(streamId: string, work: () => Promise<T>): Promise<T> => {
  const client = await admin.connect();
  try {
    await client.query('begin');
    await client.query('select 1 from stream_heads where workspace = $1 and stream_id = $2 for update', [
      WORKSPACE,
      streamId,
    ]);
    return await work();
  } finally {
    await client.query('rollback');
    client.release();
  }
};

/** Appends to each stream without a pause for `ms`. Returns appends a second. */
const rateOf = async (streams: readonly string[], ms: number): Promise<number> => {
  const until = performance.now() + ms;
  let appended = 0;
  const write = async (streamId: string): Promise<void> => {
    while (performance.now() < until) {
      await append(streamId);
      appended += 1;
    }
  };
  await Promise.all(streams.map(write));
  return (appended * 1_000) / ms;
};

describe('a stream whose head another transaction locks', () => {
  it('does not hold up other streams of the process', async () => {
    const locked = freshStream();
    const streams = Array.from({ length: SESSIONS }, () => freshStream());
    for (const streamId of [locked, ...streams]) await append(streamId);
    const before = await rateOf(streams, CONTROL_MS);
    let refused = 0;
    const during = await whileLocked(locked, async () => {
      let isOver = false;
      const retrying = (async () => {
        while (!isOver) await append(locked).catch(() => (refused += 1));
      })();
      const rate = await rateOf(streams, LOCKED_MS);
      isOver = true;
      void retrying;
      return rate;
    });
    const after = await rateOf(streams, CONTROL_MS);
    expect(during / ((before + after) / 2)).toBeGreaterThanOrEqual(LEAST_SHARE);
    // An append waits for the lock as long as a connection would.
    expect(refused).toBeGreaterThanOrEqual(1);
    expect(refused).toBeLessThanOrEqual(2);
  });

  it('is appended to in order once the lock is released, with appends that waited', async () => {
    const locked = freshStream();
    const other = freshStream();
    await append(locked, 0);
    const waiting = await whileLocked(locked, async () => {
      const appends = [append(locked, 1), append(locked, 2), append(locked, 3)];
      await letTimePass(1_000);
      await append(other);
      return { results: Promise.all(appends) };
    });
    expect((await waiting.results).map(({ versions }) => versions)).toEqual([[2], [3], [4]]);
    const startedAt = performance.now();
    await append(locked, 4);
    expect(performance.now() - startedAt).toBeLessThan(300);
  });

  it('is refused as unavailable after five seconds', async () => {
    const locked = freshStream();
    await append(locked);
    await whileLocked(locked, async () => {
      const startedAt = performance.now();
      await expect(append(locked)).rejects.toMatchObject({ code: 'LOG.UNAVAILABLE', kind: 'transient' });
      expect(performance.now() - startedAt).toBeGreaterThan(4_500);
    });
    await expect(append(locked)).resolves.toMatchObject({ outcome: 'appended' });
  });
});
