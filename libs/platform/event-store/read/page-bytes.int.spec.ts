import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { createPool } from '@antiphon/database';
import { silentLogger } from '@antiphon/observability';
import { createTestDatabase, freshStream, newEvent } from '@antiphon/testing';
import type { TestDatabase } from '@antiphon/testing';
import type { EventPage, RecordedEvent } from '../event-store.port.js';
import { PAGE_BYTES } from '../event-store.port.js';
import { createPostgresEventStore } from '../postgres-event-store.js';
import { runProjection } from '../projections/projection-runner.js';
import { readBackwards } from './read-backwards.js';

jest.setTimeout(120_000);

/** PostgreSQL compresses it to about a hundredth, so its stored size says nothing. */
const CONTENT = '漢'.repeat(262_144);
const COUNT = 40;
const MAX_EVENT = 1024 * 1024;
const workspace = 'default';

let database: TestDatabase;
let pool: pg.Pool;
const streamId = freshStream();
const store = () => createPostgresEventStore(pool);
const bytesOf = (events: readonly RecordedEvent[]): number =>
  events.reduce((sum, { data }) => sum + Buffer.byteLength(JSON.stringify(data)), 0);

beforeAll(async () => {
  database = await createTestDatabase();
  pool = createPool({ url: database.urlFor('agent'), applicationName: 'spec', statementTimeoutMs: 60_000 });
  const log = store();
  for (let at = 0; at < COUNT; at += 10)
    await log.append({
      workspace,
      streams: [
        {
          streamId,
          expectedVersion: at,
          events: Array.from({ length: 10 }, () => newEvent({ text: CONTENT })),
        },
      ],
    });
}, 120_000);
afterAll(async () => {
  await pool?.end();
  await database?.drop();
});

describe('a page of large events', () => {
  const readAll = async (read: (last: RecordedEvent | undefined) => Promise<EventPage>) => {
    const sizes: number[] = [];
    let count = 0;
    let last: RecordedEvent | undefined;
    for (let hasMore = true; hasMore;) {
      const page = await read(last);
      sizes.push(bytesOf(page.events));
      count += page.events.length;
      last = page.events.at(-1) ?? last;
      hasMore = page.hasMore;
    }
    return { count, largest: Math.max(...sizes) };
  };

  it('is bounded in bytes for a relay, and the log is read to its end', async () => {
    const read = (last: RecordedEvent | undefined) =>
      store().readLogPage({ after: last?.position ?? 0, limit: 256 });
    const { count, largest } = await readAll(read);
    expect(count).toBe(COUNT);
    expect(largest).toBeLessThan(PAGE_BYTES + MAX_EVENT);
  });

  it('is bounded in bytes for a stream, in both directions', async () => {
    const read = (last: RecordedEvent | undefined) =>
      store().readStreamPage(workspace, streamId, {
        ...{ fromVersion: (last?.streamVersion ?? 0) + 1, limit: 1_000, maxBytes: 3 * MAX_EVENT },
      });
    const { count, largest } = await readAll(read);
    expect(count).toBe(COUNT);
    expect(largest).toBeLessThan(4 * MAX_EVENT);
    const versions: number[] = [];
    for await (const { streamVersion } of readBackwards(store(), workspace, streamId, 500)) {
      versions.push(streamVersion);
      if (versions.length === 20) break;
    }
    expect(versions).toEqual(Array.from({ length: 20 }, (_, i) => COUNT - i));
  });

  it('has at least one event, also beyond the bound', async () => {
    const page = await store().readStreamPage(workspace, streamId, { limit: 10, maxBytes: 1 });
    expect(page.events).toHaveLength(1);
    expect(page.hasMore).toBe(true);
  });

  it('is bounded in bytes for a projection, which reaches the head', async () => {
    let [count, largest] = [0, 0];
    const projection = runProjection({
      ...{ pool, name: `agent-spec-${randomUUID()}`, categories: ['session'], logger: silentLogger },
      handle: (_client, events) => {
        count += events.length;
        largest = Math.max(largest, bytesOf(events));
        return Promise.resolve();
      },
    });
    await projection.waitForPosition(await store().headPosition());
    await projection.stop();
    expect(count).toBe(COUNT);
    expect(largest).toBeLessThan(PAGE_BYTES + MAX_EVENT);
  });
});
