import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { silentLogger } from '@antiphon/observability';
import type { NatsConnection } from '@nats-io/transport-node';
import { connectNats } from './nats-link.js';
import type { NatsLink } from './nats-link.js';

const url = () => process.env['ANTIPHON_TEST_NATS_URL'] ?? '';
const connect = () => connectNats({ url: url(), service: 'agent', logger: silentLogger });

interface Request {
  readonly deferred: { reject(error: Error): void };
}
interface Inside {
  readonly protocol: {
    readonly transport: { send(frame: Uint8Array): void };
    readonly muxSubscriptions: { add(request: Request): void };
  };
}
/** Counts the writes to the connection's socket. */
const countWrites = (connection: NatsConnection): { readonly writes: () => number } => {
  const { transport } = (connection as unknown as Inside).protocol;
  const send = transport.send.bind(transport);
  let writes = 0;
  transport.send = (frame) => {
    writes += 1;
    send(frame);
  };
  return { writes: () => writes };
};

let reader: NatsLink;
beforeAll(async () => {
  reader = await connect();
});
afterAll(() => reader.drain());

const subject = `live.batched-writes.${process.pid}`;

describe('a NATS connection', () => {
  it('sends the messages of one event-loop round in one write, in order', async () => {
    const link = await connect();
    const seen: string[] = [];
    const subscription = reader.connection.subscribe(subject, { max: 5 });
    await reader.connection.flush();
    const counted = countWrites(link.connection);
    for (let i = 0; i < 5; i++) {
      link.connection.publish(subject, String(i));
      await Promise.resolve();
    }
    for await (const message of subscription) seen.push(message.string());
    expect(seen).toEqual(['0', '1', '2', '3', '4']);
    expect(counted.writes()).toBe(1);
    await link.drain();
  });

  it('delivers a message published just before it is drained', async () => {
    const link = await connect();
    const subscription = reader.connection.subscribe(subject, { max: 1 });
    await reader.connection.flush();
    link.connection.publish(subject, 'last message');
    await link.drain();
    for await (const message of subscription) expect(message.string()).toBe('last message');
    expect.assertions(1);
  });

  it('makes no error for an answered request, and still rejects one without an answer', async () => {
    const link = await connect();
    const { muxSubscriptions } = (link.connection as unknown as Inside).protocol;
    const rejected: string[] = [];
    const add = muxSubscriptions.add.bind(muxSubscriptions);
    muxSubscriptions.add = (request) => {
      const reject = request.deferred.reject.bind(request.deferred);
      request.deferred.reject = (error) => (rejected.push(error.name), reject(error));
      add(request);
    };
    const answering = reader.connection.subscribe(subject, {
      callback: (_error, message) => void message.respond(message.data),
    });
    await reader.connection.flush();
    for (const text of ['one', 'two'])
      expect((await link.connection.request(subject, text, { timeout: 5_000 })).string()).toBe(text);
    expect(rejected).toEqual([]);
    answering.unsubscribe();
    await reader.connection.flush();
    const missing = link.connection.request(subject, 'three', { timeout: 5_000 });
    await expect(missing).rejects.toThrow(/no responders/i);
    await link.drain();
  });

  it('writes at once when its buffer is full', async () => {
    const link = await connect();
    const counted = countWrites(link.connection);
    const payload = new Uint8Array(40_000);
    link.connection.publish(subject, payload);
    link.connection.publish(subject, payload);
    expect(counted.writes()).toBe(1);
    await link.drain();
  });
});
