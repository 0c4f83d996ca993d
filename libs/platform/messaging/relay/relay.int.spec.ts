import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { DiscardPolicy, jetstream } from '@nats-io/jetstream';
import type { JetStreamManager } from '@nats-io/jetstream';
import type pg from 'pg';
import { createPool } from '@antiphon/database';
import { createLeaseStore, createPostgresEventStore } from '@antiphon/event-store';
import type {
  EventStore,
  EventStorePg,
  LeaseStore,
  LogPageOptions,
  ReadLogOptions,
  RecordedEvent,
} from '@antiphon/event-store';
import { silentLogger } from '@antiphon/observability';
import { createTestDatabase, startNatsServer, until } from '@antiphon/testing';
import type { TestDatabase, TestNatsServer } from '@antiphon/testing';
import { createLogNotifier } from '../link/log-notification.js';
import { connectNats } from '../link/nats-link.js';
import type { NatsLink } from '../link/nats-link.js';
import { startRelay } from './relay.js';
import type { Relay, RelayOptions } from './relay.js';
import { STREAMS, ensureStream, openJetStreamManager } from '../link/streams.js';

let server: TestNatsServer;
let database: TestDatabase;
let pool: pg.Pool;
let memoryPool: pg.Pool;
let store: EventStore & EventStorePg;
let leases: LeaseStore;
let link: NatsLink;
let manager: JetStreamManager;
const relays: Relay[] = [];

const start = (owner: string, options: Partial<RelayOptions> = {}): Relay => {
  const relay = startRelay({
    link,
    log: store,
    leases,
    owner,
    logger: silentLogger,
    pollMs: 50,
    leaseMs: 600,
    maxInFlight: 16,
    ...options,
  });
  relays.push(relay);
  return relay;
};

const append = async (
  events: number,
  data: Record<string, string> = {},
  streamId = `session-${randomUUID()}`,
): Promise<void> => {
  await store.append({
    workspace: 'default',
    streams: [
      {
        streamId,
        expectedVersion: 0,
        events: Array.from({ length: events }, (_, index) => ({
          eventId: randomUUID(),
          type: 'Tested',
          schemaVersion: 1,
          data: { index, ...data },
          metadata: { correlationId: 'req-1', service: 'agent' },
        })),
      },
    ],
  });
};

const lastSequence = async (): Promise<number> => (await manager.streams.info('EVENTS')).state.last_seq;

/** Reads all events of EVENTS, in order. */
const relayed = async (): Promise<RecordedEvent[]> => {
  const { state } = await manager.streams.info('EVENTS');
  if (state.messages === 0) return [];
  const consumer = await jetstream(link.connection).consumers.get('EVENTS', {});
  const events: RecordedEvent[] = [];
  for await (const message of await consumer.fetch({ max_messages: state.messages, expires: 2_000 })) {
    expect(message.seq).toBe(message.json<RecordedEvent>().position);
    events.push(message.json<RecordedEvent>());
  }
  return events;
};

const waitUntilRelayed = async (): Promise<RecordedEvent[]> => {
  await until(async () => (await lastSequence().catch(() => -1)) === (await store.headPosition()));
  return relayed();
};

jest.setTimeout(30_000);

describe('relay', () => {
  beforeAll(async () => {
    [server, database] = await Promise.all([startNatsServer(), createTestDatabase()]);
    pool = createPool({ url: database.urlFor('agent'), applicationName: 'relay-spec' });
    memoryPool = createPool({ url: database.urlFor('memory'), applicationName: 'relay-spec', max: 2 });
    store = createPostgresEventStore(pool, {
      onAppended: (categories) => createLogNotifier(link)(categories),
    });
    leases = createLeaseStore(memoryPool);
  });
  afterAll(async () => {
    await store.close();
    await Promise.all([pool.end(), memoryPool.end()]);
    await Promise.all([server.remove(), database.drop()]);
  });
  beforeEach(async () => {
    link = await connectNats({ url: server.url, service: 'memory', logger: silentLogger });
    manager = await openJetStreamManager(link.connection);
    await manager.streams.delete('EVENTS').catch(() => false);
  });
  afterEach(async () => {
    await Promise.all(relays.splice(0).map((relay) => relay.stop()));
    await link.drain();
  });

  it('publishes each event of the log once, complete and in order, at its position', async () => {
    await append(40);
    start('memory-1');
    await append(3);
    const events = await waitUntilRelayed();
    expect(events).toEqual(await store.readLog({ after: 0, limit: 1_000 }));
    expect(events.length).toBe(await store.headPosition());
    const stored = await manager.streams.getMessage('EVENTS', { seq: 2 });
    expect(stored?.header.get('Nats-Msg-Id')).toBe(events[1]?.eventId);
    expect(stored?.header.has('Nats-Batch-Id')).toBe(true);
  });

  it('relays at a notification, long before the next poll', async () => {
    await append(1);
    start('memory-1', { pollMs: 60_000 });
    await waitUntilRelayed();
    await append(1);
    await waitUntilRelayed();
  });

  it('continues after the last event of EVENTS after a restart, without repeats', async () => {
    const first = start('memory-1');
    await append(5);
    const before = (await waitUntilRelayed()).length;
    await first.stop();
    await append(5);
    start('memory-2');
    const events = await waitUntilRelayed();
    expect(events.length).toBe(before + 5);
    expect(new Set(events.map(({ eventId }) => eventId)).size).toBe(events.length);
  });

  it('publishes the whole log again after the stream is deleted', async () => {
    start('memory-1');
    await append(20);
    await waitUntilRelayed();
    await manager.streams.delete('EVENTS');
    const events = await waitUntilRelayed();
    expect(events).toEqual(await store.readLog({ after: 0, limit: 1_000 }));
  });

  it('fills NATS again from the log after it lost its data', async () => {
    start('memory-1');
    await append(20);
    await waitUntilRelayed();
    await server.kill();
    await append(5);
    await server.wipe();
    await server.start();
    await until(() => link.isConnected());
    const events = await waitUntilRelayed();
    expect(events).toEqual(await store.readLog({ after: 0, limit: 1_000 }));
  });

  it('keeps at most the configured number of events in flight', async () => {
    const batches: { after: number; position: number | null; limit: number | undefined }[] = [];
    await append(60);
    let relay: Relay | undefined = undefined;
    const log = {
      headPosition: () => store.headPosition(),
      basePosition: () => store.basePosition(),
      readLog: (options: ReadLogOptions) => store.readLog(options),
      readLogPage: (options: LogPageOptions) => {
        batches.push({ ...options, position: relay?.status().position ?? null, limit: options.limit });
        return store.readLogPage(options);
      },
    };
    relay = start('memory-1', { log, maxInFlight: 8 });
    await waitUntilRelayed();
    const inFlight = batches.filter(({ limit, after }) => limit === 8 && after > 0);
    expect(inFlight.length).toBeGreaterThan(6);
    for (const { after, position } of inFlight) expect(position).toBe(after);
  });

  it('logs how far EVENTS is behind the log, and that it was ahead of it', async () => {
    const lines: string[] = [];
    const note = (fields: object, text: string) => void lines.push(`${text} ${JSON.stringify(fields)}`);
    const logger = { ...silentLogger, info: note, error: note } as typeof silentLogger;
    await append(3);
    const head = await store.headPosition();
    const relay = start('memory-1', { logger });
    await waitUntilRelayed();
    await relay.stop();
    expect(lines.join()).toContain(`EVENTS behind the log {"position":0,"head":${head}`);
    await jetstream(link.connection).publish('evt.default.session.lost', '{}');
    start('memory-2', { logger });
    await until(() => lines.join().includes(`EVENTS has another history`));
    expect(lines.join()).toContain(`{"last":${head + 1},"head":${head},"alert":true}`);
    expect(await waitUntilRelayed()).toEqual(await store.readLog({ after: 0, limit: 1_000 }));
  });

  it('loses and repeats no event when NATS is killed several times', async () => {
    const relay = start('memory-1', { maxInFlight: 4 });
    for (let round = 0; round < 4; round++) {
      const before = await store.headPosition();
      const appending = Promise.all(Array.from({ length: 20 }, () => append(3)));
      await until(() => (relay.status().position ?? 0) > before);
      await server.kill();
      await appending;
      await server.start();
      await until(() => link.isConnected());
    }
    const events = await waitUntilRelayed();
    expect(events).toEqual(await store.readLog({ after: 0, limit: 10_000 }));
  });

  it('has a subject for every id that the log accepts', async () => {
    start('memory-1');
    for (const id of ['.', 'a..b', '.a', 'a.', 'a.b', '%2E', '~:/-_%']) await append(1, {}, `session-${id}`);
    await waitUntilRelayed();
  });

  it('recreates a stream that has another history', async () => {
    await append(3);
    await ensureStream(manager, STREAMS.EVENTS);
    const foreign = randomUUID();
    for (let position = 1; position <= (await store.headPosition()); position++)
      await jetstream(link.connection).publish('evt.default.session.foreign', '{}', {
        msgID: `${foreign}${position}`,
      });
    start('memory-1');
    await until(async () => (await relayed().catch(() => []))[0]?.streamId !== undefined);
    expect(await waitUntilRelayed()).toEqual(await store.readLog({ after: 0, limit: 1_000 }));
  });

  it('recreates a stream that is ahead of a restored log', async () => {
    await append(3);
    await ensureStream(manager, STREAMS.EVENTS);
    for (let ahead = 0; ahead < (await store.headPosition()) + 10; ahead++)
      await jetstream(link.connection).publish('evt.default.session.lost', '{}');
    start('memory-1');
    expect(await waitUntilRelayed()).toEqual(await store.readLog({ after: 0, limit: 1_000 }));
  });

  it('has one leader of two candidates, and the other takes over', async () => {
    const candidates = [start('memory-1'), start('memory-2')];
    await until(() => candidates.some((relay) => relay.status().leading));
    await append(10);
    await waitUntilRelayed();
    expect(candidates.filter((relay) => relay.status().leading)).toHaveLength(1);
    const leader = candidates.find((relay) => relay.status().leading);
    const follower = candidates.find((relay) => relay !== leader);
    await leader?.stop();
    await until(() => follower?.status().leading === true);
    await append(10);
    expect(await waitUntilRelayed()).toEqual(await store.readLog({ after: 0, limit: 1_000 }));
  });

  it('acquires the lease of a leader that died without releasing it', async () => {
    await leases.acquire('default', 'relay', 'memory-dead', 400);
    const relay = start('memory-1');
    await append(2);
    expect(relay.status().leading).toBe(false);
    await waitUntilRelayed();
    expect(relay.status().leading).toBe(true);
  });

  it('is undisturbed by a second relay that believes it leads', async () => {
    const alwaysGranted: LeaseStore = {
      ...leases,
      acquire: (workspace, name, owner) =>
        Promise.resolve({ acquired: true, lease: { workspace, name, owner, epoch: 1 } }),
      renew: () => Promise.resolve([]),
      release: () => Promise.resolve(),
    };
    start('memory-1', { leases: alwaysGranted });
    start('memory-2', { leases: alwaysGranted });
    for (let round = 0; round < 10; round++) await append(20);
    const events = await waitUntilRelayed();
    expect(events.map(({ position }) => position)).toEqual(events.map((_, index) => index + 1));
  });

  it('waits while EVENTS is full and loses no event', async () => {
    start('memory-1');
    await append(20);
    await waitUntilRelayed();
    const { config, state } = await manager.streams.info('EVENTS');
    await manager.streams.update('EVENTS', {
      ...config,
      discard: DiscardPolicy.New,
      max_msgs: state.messages,
    });
    await append(20);
    await append(20);
    await until(async () => (await store.headPosition()) > state.last_seq);
    expect(await lastSequence()).toBe(state.last_seq);
    await manager.streams.update('EVENTS', { ...config, discard: DiscardPolicy.Old, max_msgs: -1 });
    const events = await waitUntilRelayed();
    expect(events.map(({ position }) => position)).toEqual(events.map((_, index) => index + 1));
  });

  it('sends the announcement of an event once EVENTS has it', async () => {
    const heard: string[] = [];
    const subscription = link.connection.subscribe('hint.turn-end.>', {
      callback: (_error, message) =>
        void lastSequence().then((last) => heard.push(`${message.string()} ${last}`)),
    });
    start('memory-1', {
      announce: ({ data, position }) =>
        data['index'] === 2 && data['mark'] === 'announced'
          ? { subject: 'hint.turn-end.default.one', data: `${position}` }
          : null,
    });
    await append(5, { mark: 'announced' });
    const events = await waitUntilRelayed();
    await until(() => heard.length === 1);
    subscription.unsubscribe();
    expect(heard).toEqual([`${events.at(-3)?.position} ${events.at(-1)?.position}`]);
  });

  it('publishes an event too large for a message without its data', async () => {
    start('memory-1');
    await append(1, { text: 'x'.repeat(1024 * 1024 - 1_000) });
    await append(1);
    const events = await waitUntilRelayed();
    expect(events.at(-2)?.data).toEqual({});
    expect(events.at(-1)?.data).toMatchObject({ index: 0 });
    const stored = await manager.streams.getMessage('EVENTS', { seq: events.length - 1 });
    expect(Number(stored?.header.get('x-omitted'))).toBeGreaterThan(1_000_000);
  });
});
