import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { AckPolicy, jetstream } from '@nats-io/jetstream';
import { nanos } from '@nats-io/transport-node';
import { v5 } from 'uuid';
import type pg from 'pg';
import { createPool } from '@antiphon/database';
import { createPostgresEventStore } from '@antiphon/event-store';
import type { EventStore, EventStorePg } from '@antiphon/event-store';
import { createTestDatabase, until } from '@antiphon/testing';
import type { TestDatabase } from '@antiphon/testing';
import { STREAMS } from '../link/streams.js';
import { useConsumerWorld } from './testing/consumer-world.js';
import type { Message } from './testing/consumer-world.js';

const NAMESPACE = '6f1d0a4e-2c55-4f0b-9d5e-000000000001';

/** JetStream delivers at least once, in any order; the log makes effects happen once. */
describe('effects of messages', () => {
  const world = useConsumerWorld();
  let database: TestDatabase;
  let pool: pg.Pool;
  let store: EventStore & EventStorePg;

  beforeAll(async () => {
    database = await createTestDatabase();
    pool = createPool({ url: database.urlFor('agent'), applicationName: 'effects-spec' });
    store = createPostgresEventStore(pool);
  });
  afterAll(async () => {
    await store.close();
    await pool.end();
    await database.drop();
  });

  const append = async (streamId: string, { n }: Message, expectedVersion: number, eventId: string) => {
    const metadata = { correlationId: 'req', service: 'agent' };
    const event = { eventId, type: 'Counted', schemaVersion: 1, data: { n }, metadata };
    await store.append({ workspace: 'default', streams: [{ streamId, expectedVersion, events: [event] }] });
  };
  const numbersOf = async (streamId: string): Promise<unknown[]> =>
    (await store.readStream('default', streamId)).map(({ data }) => data['n']);

  it('happen once for a message published many times within and after the deduplication window', async () => {
    await world.manager.streams.update('EVENTS', { ...STREAMS.EVENTS, duplicate_window: nanos(500) });
    const streamId = `session-${randomUUID()}`;
    const handled: string[] = [];
    world.run(async (message, { messageId }) => {
      await append(streamId, message, 0, v5(messageId, NAMESPACE));
      handled.push(messageId);
    });
    await Promise.all(Array.from({ length: 10 }, () => world.publish(1, { id: 'same' })));
    const copies = async () => (await world.manager.streams.info('EVENTS')).state.messages;
    expect(await copies()).toBe(1);
    // After the window the server treats copies as new messages.
    await until(async () => (await world.publish(1, { id: 'same' }), (await copies()) >= 4));
    await world.settled();
    expect(handled.length).toBeGreaterThanOrEqual(4);
    expect(await numbersOf(streamId)).toEqual([1]);
  });

  it('happen in order when messages arrive out of order', async () => {
    const streamId = `session-${randomUUID()}`;
    world.run((message, { messageId }) => append(streamId, message, message.n - 1, messageId));
    for (const n of [3, 1, 2]) await world.publish(n);
    await world.settled();
    expect(await numbersOf(streamId)).toEqual([1, 2, 3]);
    expect(await world.deadLetters()).toEqual([]);
  });

  it('come from the process that took over, not from the one that stalled', async () => {
    const streamId = `session-${randomUUID()}`;
    await world.manager.consumers.add('EVENTS', {
      durable_name: 'metering-spec',
      filter_subject: 'evt.*.session.>',
      ack_policy: AckPolicy.Explicit,
      ack_wait: nanos(300),
      max_deliver: -1,
    });
    await world.publish(1);
    const consumer = await jetstream(world.link.connection).consumers.get('EVENTS', 'metering-spec');
    const stalled = await consumer.next({ expires: 2_000 });
    const options = { ackWaitMs: 300 };
    world.run(
      (message, { messageId }) => append(streamId, message, 0, v5(`${messageId}/b`, NAMESPACE)),
      options,
    );
    await until(async () => (await numbersOf(streamId)).length === 1);
    // The stalled process resumes with the message: the server accepts its late acknowledgement,
    // the log rejects its late effect.
    await expect(append(streamId, { n: 1 }, 0, randomUUID())).rejects.toMatchObject({
      code: 'LOG.VERSION_CONFLICT',
    });
    stalled?.ack();
    await world.settled();
    expect(await numbersOf(streamId)).toEqual([1]);
  });
});
