import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import type pg from 'pg';
import { foldRun, foldRunHistory, RunEvent, runStream } from '@antiphon/contracts/agent';
import { createPool } from '@antiphon/database';
import { createPostgresEventStore, type EventStore, type EventStorePg } from '@antiphon/event-store';
import { createTestDatabase, type TestDatabase } from '@antiphon/testing';
import { readRunHistory, type RunHistoryRequest } from './read-run-history.js';

const NODES = 12;
const LARGE_NODES = 6;
const at = '2026-11-22T10:00:00.000Z';
const runId = randomUUID();
const largeRunId = randomUUID();
let database: TestDatabase;
let pool: pg.Pool;
let writer: pg.Pool;
let store: EventStore & EventStorePg;
let agentStore: EventStore & EventStorePg;
let before = 0;

const append = (id: string, type: string, data: object) =>
  agentStore.append({
    workspace: 'default',
    streams: [
      {
        ...{ streamId: runStream(id), expectedVersion: 'any' },
        events: [
          {
            ...{ eventId: randomUUID(), type, schemaVersion: 1, data: { runId: id, ...data } as never },
            metadata: { correlationId: 'spec', service: 'agent' },
          },
        ],
      },
    ],
  });
const start = async (id: string, count: number): Promise<void> => {
  const nodes = Array.from({ length: count }, (_, index) => ({
    ...{ id: `n${index}`, agent: 'main', prompt: 'hi', needs: [], attempts: 2 },
  }));
  const definition = { name: 'many', inputs: {}, nodes };
  const saved = { workflowId: null, workflowVersion: null, inputs: {} };
  await append(id, 'RunStarted', { ...saved, definition, startedAt: at });
};
const run = async (id: string, index: number, output: string): Promise<void> => {
  const nodeId = `n${index}`;
  await append(id, 'TaskReady', { nodeId, readyAt: at });
  const turn = { agentId: 'main', sessionId: randomUUID(), turnId: randomUUID() };
  await append(id, 'TaskStarted', { nodeId, attempt: 1, ...turn, startedAt: at });
  await append(id, 'TaskCompleted', { nodeId, attempt: 1, output, completedAt: at });
};

beforeAll(async () => {
  database = await createTestDatabase();
  writer = createPool({ url: database.urlFor('agent'), applicationName: 'spec' });
  pool = createPool({ url: database.urlFor('gateway'), applicationName: 'spec' });
  agentStore = createPostgresEventStore(writer);
  store = createPostgresEventStore(pool);
  await start(largeRunId, LARGE_NODES);
  before = await store.headPosition();
  await start(runId, NODES);
  for (let index = 0; index < NODES; index++) await run(runId, index, `output ${index}`);
  await append(runId, 'RunCompleted', { completedAt: at });
  for (let index = 0; index < LARGE_NODES; index++) await run(largeRunId, index, 'x'.repeat(1_000_000));
});
afterAll(async () => {
  await Promise.all([store.close(), agentStore.close()]);
  await Promise.all([pool.end(), writer.end()]);
  await database.drop();
});

const history = (query: Partial<RunHistoryRequest> = {}) =>
  readRunHistory(store, { workspace: 'default', runId, limit: 500, ...query });
/** Folds the whole event stream up to a position. */
const runAt = async (position: number) => {
  const events = await agentStore.readStream('default', runStream(runId));
  return foldRun(events.filter((event) => event.position <= position).map((event) => RunEvent.parse(event)));
};

describe('a part of the history of a run', () => {
  it('folds to the run as of any position, from any snapshot and page', async () => {
    const head = await store.headPosition();
    const place = fc.integer({ min: 0, max: head });
    await fc.assert(
      fc.asyncProperty(place, place, fc.integer({ min: 1, max: 50 }), async (one, other, limit) => {
        const [from, to] = [Math.min(one, other), Math.max(one, other)];
        fc.pre(to > before);
        const page = await history({ from, to, limit });
        expect(page.events.length).toBeLessThanOrEqual(limit);
        expect(page.position).toBeGreaterThanOrEqual(from);
        for (const position of [from, Math.floor((from + page.position) / 2), page.position])
          expect(foldRunHistory(page, position)).toEqual(await runAt(position));
      }),
      { numRuns: 60 },
    );
  });

  it('is paged without a gap, and says where it ends', async () => {
    const versions: number[] = [];
    let page = await history({ limit: 7 });
    for (; !page.isLast; page = await history({ from: page.position, limit: 7 })) {
      expect(page.events).toHaveLength(7);
      versions.push(...page.events.map(({ version }) => version));
    }
    versions.push(...page.events.map(({ version }) => version));
    expect(page.position).toBe(await store.headPosition());
    expect(versions).toEqual(Array.from({ length: 3 * NODES + 2 }, (_, index) => index + 1));
  });

  it('has at most 4 MiB of events in a page', async () => {
    const outputs: number[] = [];
    let page = await history({ runId: largeRunId });
    for (; ; page = await history({ runId: largeRunId, from: page.position })) {
      outputs.push(page.events.filter(({ event }) => event.type === 'TaskCompleted').length);
      if (page.isLast) break;
    }
    expect(outputs).toEqual([4, 2]);
  });

  it('is not found in another workspace or before the run started, and ends at the head', async () => {
    await expect(history({ workspace: 'other' })).rejects.toMatchObject({ code: 'RUN.NOT_FOUND' });
    await expect(history({ to: before })).rejects.toMatchObject({ code: 'RUN.NOT_FOUND' });
    expect((await history({ to: before + 1 })).snapshot).toEqual({ run: null });
    const beyond = (await store.headPosition()) + 1;
    for (const query of [{ to: beyond }, { from: beyond }])
      await expect(history(query)).rejects.toMatchObject({ code: 'LOG.POSITION_AHEAD' });
  });
});
