import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { runStream, sessionStream } from '@antiphon/contracts/agent';
import type { EventFilter } from '@antiphon/contracts/gateway';
import { decodeCursor } from '@antiphon/contracts/log';
import { createPool } from '@antiphon/database';
import { createPostgresEventStore, type NewEvent, type RecordedEvent } from '@antiphon/event-store';
import { createTestDatabase, newEvent, until, type TestDatabase } from '@antiphon/testing';
import type pg from 'pg';
import { READS_ALL } from './shown-events.js';
import { EventSubscription } from './event-subscription.js';
import { LogTail } from './log-tail.js';

jest.setTimeout(120_000);

const GATEWAYS = 3;
const AGENTS = ['alice', 'bob'];
const SESSIONS = Array.from({ length: 6 }, () => randomUUID());
const RUN = randomUUID();
const TYPES = ['TurnRequested', 'ModelCallCompleted', 'TurnFailed', 'TurnCompleted'];

let database: TestDatabase;
let pools: pg.Pool[];
let store: ReturnType<typeof createPostgresEventStore>;
let gateways: LogTail[];
const listeners = new Set<() => void>();

const append = (workspace: string, streamId: string, events: readonly NewEvent[]) =>
  store.append({ workspace, streams: [{ streamId, expectedVersion: 'any', events }] });

/** Every second notification of a gateway is lost. */
const notify = (): void => {
  for (const wake of listeners) if (Math.random() < 0.5) wake();
};

const begin = async (): Promise<void> => {
  for (const [i, session] of SESSIONS.entries())
    for (const workspace of ['default', 'other'])
      await append(workspace, sessionStream(session), [
        newEvent({ agentId: AGENTS[i % 2] ?? '' }, { type: 'SessionStarted' }),
      ]);
};

/** Appends events of both workspaces at random. */
const write = async (batches: number): Promise<void> => {
  for (let batch = 0; batch < batches; batch++) {
    const workspace = Math.random() < 0.6 ? 'default' : 'other';
    const session = SESSIONS[Math.floor(Math.random() * SESSIONS.length)] ?? '';
    const streamId = Math.random() < 0.1 ? runStream(RUN) : sessionStream(session);
    const text = 'x'.repeat(Math.floor(Math.random() * 2_000));
    const events = Array.from({ length: 1 + Math.floor(Math.random() * 8) }, () => {
      const type = TYPES[Math.floor(Math.random() * TYPES.length)] ?? '';
      return newEvent(streamId.startsWith('run') ? { agentId: 'bob', text } : { text }, {
        type: streamId.startsWith('run') ? 'TaskStarted' : type,
      });
    });
    await append(workspace, streamId, events);
    notify();
  }
};

const log = (): Promise<RecordedEvent[]> => store.readLog({ after: 0, limit: 1_000_000 });
const agentOf = ({ streamId }: RecordedEvent): string =>
  streamId.startsWith('run')
    ? 'bob'
    : (AGENTS[SESSIONS.findIndex((id) => streamId === sessionStream(id)) % 2] ?? '');

interface Reader {
  readonly positions: number[];
  readonly jsons: string[];
  cursor: string | null;
  live: number;
  close(): void;
}

const subscribe = async (gateway: LogTail, filter: EventFilter, reader?: Reader): Promise<Reader> => {
  const { tail, release } = await gateway.open('default');
  const after = reader?.cursor ? (decodeCursor(reader.cursor) ?? 0) : 0;
  const read: Reader = reader ?? { positions: [], jsons: [], cursor: null, live: 0, close: () => undefined };
  const subscription = new EventSubscription({
    readPage: (read) => read(),
    reader: READS_ALL,
    ...{ log: gateway, tail, filter, after },
    deliver: ({ position, json, cursor }) => {
      read.positions.push(position);
      read.jsons.push(json);
      read.cursor = cursor;
    },
    onLive: () => read.live++,
    waitForRoom: () => undefined,
    onRetry: () => undefined,
  });
  void subscription.run();
  read.close = () => {
    subscription.close();
    release();
  };
  return read;
};

beforeAll(async () => {
  database = await createTestDatabase();
  pools = [
    createPool({ url: database.urlFor('agent'), applicationName: 'spec' }),
    ...Array.from({ length: GATEWAYS }, () =>
      createPool({ url: database.urlFor('gateway'), applicationName: 'spec', max: 4 }),
    ),
  ];
  store = createPostgresEventStore(pools[0] as pg.Pool, {});
  gateways = pools.slice(1).map(
    (pool) =>
      new LogTail({
        pool,
        onAppend: (wake) => {
          listeners.add(wake);
          return () => listeners.delete(wake);
        },
        onError: () => undefined,
      }),
  );
  await begin();
  await write(50);
});
afterAll(async () => {
  for (const gateway of gateways ?? []) gateway.close();
  await store?.close();
  for (const pool of pools ?? []) await pool.end();
  await database?.drop();
});

const FILTERS: readonly [EventFilter, (event: RecordedEvent) => boolean][] = [
  [{}, () => true],
  [{ severity: 'error' }, ({ type }) => type === 'TurnFailed'],
  [
    { type: 'TurnCompleted', agent: 'alice' },
    (event) => event.type === 'TurnCompleted' && agentOf(event) === 'alice',
  ],
  [{ agent: 'bob' }, (event) => agentOf(event) === 'bob'],
  [{ session: SESSIONS[0] ?? '' }, ({ streamId }) => streamId === sessionStream(SESSIONS[0] ?? '')],
  [{ run: RUN }, ({ streamId }) => streamId === runStream(RUN)],
  [{ category: 'run', severity: 'info' }, ({ category }) => category === 'run'],
];

describe('a subscription to events', () => {
  it('delivers every event once and in order over three gateways, with drops and lost notifications', async () => {
    const gateway = (): LogTail => gateways[Math.floor(Math.random() * GATEWAYS)] as LogTail;
    const readers = await Promise.all(FILTERS.map(([filter]) => subscribe(gateway(), filter)));
    for (let round = 0; round < 30; round++) {
      await write(10);
      for (const [i, reader] of readers.entries()) {
        if (Math.random() < 0.4) continue;
        reader.close();
        if (Math.random() < 0.5) await write(3);
        await subscribe(gateway(), FILTERS[i]?.[0] ?? {}, reader);
      }
    }
    const own = (await log()).filter(({ workspace }) => workspace === 'default');
    expect(own.length).toBeGreaterThan(1_000);
    for (const [i, reader] of readers.entries()) {
      const expected = own.filter(FILTERS[i]?.[1] ?? (() => false)).map(({ position }) => position);
      await until(() => reader.positions.length >= expected.length);
      expect([FILTERS[i]?.[0], reader.positions]).toEqual([FILTERS[i]?.[0], expected]);
      reader.close();
    }
  });

  it('listens for appends only while a workspace has subscribers', async () => {
    await until(() => listeners.size === 0);
    const reader = await subscribe(gateways[0] as LogTail, {});
    expect(listeners.size).toBe(1);
    reader.close();
    await until(() => listeners.size === 0);
  });

  it('begins at any position of the log', async () => {
    const own = (await log()).filter(({ workspace }) => workspace === 'default');
    for (let i = 0; i < 20; i++) {
      const from = own[Math.floor(Math.random() * own.length)] as RecordedEvent;
      const gateway = gateways[i % GATEWAYS] as LogTail;
      const { tail, release } = await gateway.open('default');
      const cursor = tail.cursorAt(from.position);
      release();
      const reader = await subscribe(
        gateway,
        {},
        {
          ...{ positions: [], jsons: [], cursor, live: 0 },
          close: () => undefined,
        },
      );
      const expected = own.map(({ position }) => position).filter((position) => position > from.position);
      await until(() => reader.live === 1);
      expect(reader.positions).toEqual(expected);
      reader.close();
    }
  });

  it('never delivers an event of another workspace', async () => {
    const reader = await subscribe(gateways[0] as LogTail, {});
    await write(20);
    await until(() => reader.live === 1);
    const others = new Set(
      (await log()).filter(({ workspace }) => workspace === 'other').map((e) => e.eventId),
    );
    expect(others.size).toBeGreaterThan(0);
    for (const json of reader.jsons)
      expect(others.has((JSON.parse(json) as RecordedEvent).eventId)).toBe(false);
    reader.close();
  });

  it('ends with GATEWAY.EPOCH_CHANGED after a restore of the log', async () => {
    const { tail, release } = await (gateways[1] as LogTail).open('default');
    const subscription = new EventSubscription({
      readPage: (read) => read(),
      reader: READS_ALL,
      ...{ log: gateways[1] as LogTail, tail, filter: {}, after: tail.position },
      deliver: () => undefined,
      onLive: () => undefined,
      waitForRoom: () => undefined,
      onRetry: () => undefined,
    });
    const ended = subscription.run().then(
      () => null,
      (error: unknown) => error,
    );
    const admin = createPool({ url: database.url, applicationName: 'spec' });
    await admin.query('update log_head set epoch = epoch + 1');
    await admin.end();
    expect(await ended).toMatchObject({ code: 'GATEWAY.EPOCH_CHANGED' });
    release();
    const again = await (gateways[1] as LogTail).open('default');
    expect(again.tail.epoch).toBe(tail.epoch + 1);
    again.release();
  });
});
