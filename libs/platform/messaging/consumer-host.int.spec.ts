import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { AckPolicy, jetstream } from '@nats-io/jetstream';
import type { JetStreamManager } from '@nats-io/jetstream';
import { headers, nanos } from '@nats-io/transport-node';
import { z } from 'zod';
import {
  bug,
  conflict,
  exhausted,
  forbidden,
  invalid,
  notFound,
  rejected,
  transient,
} from '@antiphon/kernel';
import { createLogger, currentContext, silentLogger } from '@antiphon/observability';
import { startNatsServer, until } from '@antiphon/testing';
import type { TestNatsServer } from '@antiphon/testing';
import { createConsumerHost } from './consumer-host.js';
import type { ConsumerHost } from './consumer-host.js';
import { DLQ_HEADERS } from './dead-letter.js';
import { defineConsumer } from './define-consumer.js';
import type { ConsumerDefinition, MessageMeta } from './define-consumer.js';
import { EVENT_HEADERS } from './event-message.js';
import { connectNats } from './nats-link.js';
import type { NatsLink } from './nats-link.js';
import { STREAMS, ensureStream, managerOf } from './streams.js';

const Message = z.object({ n: z.number() });
type Message = z.infer<typeof Message>;
type Handle = (message: Message, meta: MessageMeta) => Promise<void>;

let server: TestNatsServer;
let link: NatsLink;
let manager: JetStreamManager;
const hosts: ConsumerHost[] = [];

const run = (
  handle: Handle,
  options: Partial<ConsumerDefinition<typeof Message, Handle>> = {},
  on: NatsLink = link,
  logger = silentLogger,
) => {
  const host = createConsumerHost({ link: on, logger });
  hosts.push(host);
  const definition = defineConsumer<typeof Message, Handle>({
    durable: 'metering-spec',
    subject: 'evt.*.session.>',
    schema: Message,
    policy: { backoffMs: [20] },
    handle: (given) => given,
    ...options,
  });
  return { host, consumer: host.run(definition, handle) };
};

const publish = async (n: number, subject = 'evt.default.session.one', type = 'Counted'): Promise<void> => {
  const carried = headers();
  carried.set(EVENT_HEADERS.type, type);
  carried.set('x-correlation-id', `req-${n}`);
  const client = jetstream(link.connection);
  await client.publish(subject, JSON.stringify({ n }), { msgID: randomUUID(), headers: carried });
};

const unsettled = async (): Promise<number> => {
  const { num_ack_pending, num_pending } = await manager.consumers.info('EVENTS', 'metering-spec');
  return num_ack_pending + num_pending;
};
const settled = (): Promise<void> => until(async () => (await unsettled().catch(() => -1)) === 0);

const deadLetters = async () => {
  const { state } = await manager.streams.info('DLQ');
  if (state.messages === 0) return [];
  const consumer = await jetstream(link.connection).consumers.get('DLQ', {});
  const found = [];
  for await (const message of await consumer.fetch({ max_messages: state.messages, expires: 2_000 }))
    found.push({
      subject: message.subject,
      code: message.headers?.get(DLQ_HEADERS.code),
      reason: message.headers?.get(DLQ_HEADERS.reason),
      from: message.headers?.get(DLQ_HEADERS.subject),
      deliveries: Number(message.headers?.get(DLQ_HEADERS.deliveries)),
      text: message.string(),
    });
  return found;
};

/** Takes a message without a word, and answers how often it has been delivered with an ack wait of 300 ms. */
const silentDeliveries = async (sequence: number): Promise<number> => {
  const stream = 'EVENTS';
  await manager.consumers.add(stream, {
    durable_name: 'silent',
    ack_policy: AckPolicy.Explicit,
    ack_wait: nanos(300),
  });
  const consumer = await jetstream(link.connection).consumers.get(stream, 'silent');
  const message = await consumer.next({ expires: 1_000 });
  return message?.seq === sequence ? message.info.deliveryCount : 0;
};

/** A handler that answers deliveries of each number by its plan, and notes them. */
const planned = (plan: Record<number, (delivery: number) => unknown>) => {
  const seen: string[] = [];
  const handle: Handle = ({ n }, { deliveryCount }) => {
    seen.push(`${n}:${deliveryCount}`);
    const error = plan[n]?.(deliveryCount);
    return error === undefined ? Promise.resolve() : Promise.reject(error as Error);
  };
  return { seen, handle };
};

jest.setTimeout(30_000);

describe('consumer host', () => {
  beforeAll(async () => {
    server = await startNatsServer();
  });
  afterAll(() => server.remove());
  beforeEach(async () => {
    link = await connectNats({ url: server.url, service: 'metering', logger: silentLogger });
    manager = await managerOf(link.connection);
    for (const name of ['EVENTS', 'DLQ'] as const) {
      await manager.streams.delete(name).catch(() => false);
      await ensureStream(manager, STREAMS[name]);
    }
  });
  afterEach(async () => {
    await Promise.all(hosts.splice(0).map((host) => host.stop()));
    await link.drain();
  });

  it('hands each message over once, parsed, in the context of what caused it', async () => {
    const seen: unknown[] = [];
    run((message, meta) => {
      const { correlationId, causationId, service } = currentContext() ?? {};
      seen.push({ ...message, ...meta, correlationId, caused: causationId === meta.messageId, service });
      return Promise.resolve();
    });
    await publish(1);
    await settled();
    expect(seen).toMatchObject([
      {
        n: 1,
        subject: 'evt.default.session.one',
        sequence: 1,
        deliveryCount: 1,
        correlationId: 'req-1',
        caused: true,
        service: 'metering',
      },
    ]);
  });

  it.each([
    ['invalid', invalid],
    ['forbidden', forbidden],
    ['not_found', notFound],
    ['bug', bug],
  ])('puts a message aside at once whose handler says %s', async (_kind, make) => {
    const { seen, handle } = planned({ 1: () => make('TEST.REFUSED', 'no\r\nway') });
    run(handle);
    await publish(1);
    await publish(2);
    await settled();
    expect(seen.sort()).toEqual(['1:1', '2:1']);
    expect(await deadLetters()).toEqual([
      {
        subject: 'dlq.metering-spec',
        code: 'TEST.REFUSED',
        reason: 'no way',
        from: 'evt.default.session.one',
        deliveries: 1,
        text: '{"n":1}',
      },
    ]);
  });

  it('is done with a message that a rule refuses', async () => {
    const { seen, handle } = planned({ 1: () => rejected('TEST.RULE', 'no') });
    run(handle);
    await publish(1);
    await settled();
    expect(seen).toEqual(['1:1']);
    expect(await deadLetters()).toEqual([]);
  });

  it('delivers again after a conflict, and gives up after five failures', async () => {
    const { seen, handle } = planned({
      1: (delivery) => (delivery < 3 ? conflict('TEST.CONFLICT', 'again') : undefined),
      2: () => conflict('TEST.CONFLICT', 'always'),
    });
    run(handle);
    await publish(1);
    await publish(2);
    await settled();
    expect(seen.filter((entry) => entry.startsWith('1'))).toEqual(['1:1', '1:2', '1:3']);
    expect(seen.filter((entry) => entry.startsWith('2'))).toHaveLength(5);
    expect(await deadLetters()).toMatchObject([{ code: 'TEST.CONFLICT', deliveries: 5, text: '{"n":2}' }]);
  });

  it('gives up a handler that always throws what nobody foresaw, with an alert and nothing told', async () => {
    const lines: Record<string, unknown>[] = [];
    const sink = { write: (line: string) => void lines.push(JSON.parse(line) as Record<string, unknown>) };
    const { seen, handle } = planned({ 1: () => new TypeError('secret of /srv') });
    run(handle, {}, link, createLogger({ service: 'metering', sink }));
    await publish(1);
    await settled();
    expect(seen).toHaveLength(5);
    const [letter] = await deadLetters();
    expect(letter?.code).toBe('INTERNAL.UNEXPECTED');
    expect(letter?.reason).not.toContain('secret');
    expect(lines.find((line) => line['alert'] === true)).toMatchObject({
      level: 'error',
      correlationId: 'req-1',
    });
  });

  it('keeps a message through an outage of whatever length', async () => {
    const { seen, handle } = planned({
      1: (delivery) => (delivery < 9 ? transient('TEST.DOWN', 'down') : undefined),
      2: (delivery) =>
        delivery < 9 ? exhausted('TEST.QUOTA', 'full', { data: { retryAfterSeconds: 0.02 } }) : undefined,
    });
    run(handle);
    await publish(1);
    await publish(2);
    await settled();
    expect(seen.filter((entry) => entry.startsWith('1'))).toHaveLength(9);
    expect(seen.filter((entry) => entry.startsWith('2'))).toHaveLength(9);
    expect(await deadLetters()).toEqual([]);
  });

  it.each([
    ['bytes that are no text', new Uint8Array([0xff, 0xfe])],
    ['text that is no JSON', 'nope'],
    ['JSON of another shape', '{"n":"x"}'],
    ['nothing', ''],
  ])('puts %s aside with the reason, and goes on', async (_what, payload) => {
    const { seen, handle } = planned({});
    run(handle);
    await jetstream(link.connection).publish('evt.default.session.one', payload);
    await publish(2);
    await settled();
    expect(seen).toEqual(['2:1']);
    expect(await deadLetters()).toMatchObject([{ code: 'MESSAGING.INVALID' }]);
  });

  it('passes over types that it does not handle', async () => {
    const { seen, handle } = planned({});
    run(handle, { types: ['Counted'] });
    await publish(1, 'evt.default.session.one', 'Other');
    await publish(2);
    await settled();
    expect(seen).toEqual(['2:1']);
  });

  it('keeps the order within a subject, also around a message that fails', async () => {
    const { handle } = planned({
      1: (delivery) => (delivery < 3 ? conflict('TEST.CONFLICT', 'again') : undefined),
      3: (delivery) => (delivery < 6 ? transient('TEST.DOWN', 'down') : undefined),
    });
    const done: number[] = [];
    run(
      async (message, meta) => {
        await handle(message, meta);
        done.push(message.n);
      },
      { order: 'subject' },
    );
    for (let n = 1; n <= 5; n++) await publish(n, 'evt.default.session.ordered');
    await publish(9, 'evt.default.session.other');
    await settled();
    expect(done.filter((n) => n < 9)).toEqual([1, 2, 3, 4, 5]);
    expect(done[0]).toBe(9);
  });

  it('works on no more messages at once than allowed', async () => {
    let now = 0;
    let most = 0;
    run(
      async () => {
        most = Math.max(most, ++now);
        await new Promise((resolve) => setImmediate(resolve));
        now--;
      },
      { concurrency: 3 },
    );
    for (let n = 0; n < 60; n++) await publish(n);
    await settled();
    expect(most).toBe(3);
  });

  it('does not let the server take a long handler for a dead one', async () => {
    const { seen, handle } = planned({});
    let release: () => void = () => {};
    const released = new Promise<void>((resolve) => (release = resolve));
    run(
      async (message, meta) => {
        await handle(message, meta);
        if (message.n === 1) await released;
      },
      { ackWaitMs: 300 },
    );
    await publish(1);
    // Redelivery would have come three times by when the server's own clock has gone this far.
    const delivered = async () =>
      (await manager.consumers.info('EVENTS', 'metering-spec')).delivered.last_active;
    await until(() => seen.length === 1);
    const begun = Date.now();
    await until(() => Date.now() - begun > 1_000);
    await delivered();
    release();
    await settled();
    expect(seen).toEqual(['1:1']);
  });

  it('takes over what a process left when it died', async () => {
    const dying = await connectNats({ url: server.url, service: 'metering', logger: silentLogger });
    const abandoned: string[] = [];
    run(
      ({ n }, { deliveryCount }) => {
        abandoned.push(`${n}:${deliveryCount}`);
        return new Promise(() => {});
      },
      { ackWaitMs: 500 },
      dying,
    );
    await publish(1);
    await until(() => abandoned.length === 1);
    await dying.connection.close();
    hosts.splice(0);
    const { seen, handle } = planned({});
    run(handle, { ackWaitMs: 500 });
    await settled();
    expect(seen).toEqual(['1:2']);
  });

  it('goes on when its stream is deleted and made again while it runs', async () => {
    const { seen, handle } = planned({});
    const { consumer } = run(handle);
    await publish(1);
    await settled();
    await manager.streams.delete('EVENTS');
    await until(() => !consumer.isConsuming());
    await ensureStream(manager, STREAMS.EVENTS);
    await publish(2);
    await settled();
    expect(seen).toEqual(['1:1', '2:1']);
  });

  it('goes on when its consumer or the dead letters are deleted while it runs', async () => {
    const { seen, handle } = planned({ 2: () => invalid('TEST.BAD', 'bad') });
    const { consumer } = run(handle);
    await publish(1);
    await settled();
    await manager.streams.delete('DLQ');
    await manager.consumers.delete('EVENTS', 'metering-spec');
    await until(() => !consumer.isConsuming());
    await publish(2);
    await settled();
    expect(seen.filter((entry) => entry.startsWith('2'))).toEqual(['2:1']);
    expect(await deadLetters()).toHaveLength(1);
  });

  it('goes on after NATS was killed, and after it lost everything', async () => {
    const seen = new Set<number>();
    run(({ n }) => Promise.resolve(void seen.add(n)));
    await publish(1);
    await settled();
    await server.kill();
    await server.start();
    await until(() => link.isConnected());
    await publish(2);
    // What it had acknowledged just before the crash may come again: the server had not written that down.
    await until(() => seen.has(2));
    await server.kill();
    await server.wipe();
    await server.start();
    await until(() => link.isConnected());
    await ensureStream(manager, STREAMS.EVENTS);
    await publish(3);
    await until(() => seen.has(3));
  });

  it('ends what is at work when it stops, and gives back what it had not begun', async () => {
    let release: () => void = () => {};
    const released = new Promise<void>((resolve) => (release = resolve));
    const begun: number[] = [];
    const { host } = run(
      async ({ n }) => {
        begun.push(n);
        await released;
      },
      { concurrency: 2 },
    );
    for (let n = 1; n <= 6; n++) await publish(n);
    await until(() => begun.length === 2);
    const stopped = host.stop();
    release();
    await stopped;
    const { seen, handle } = planned({});
    run(handle);
    await settled();
    expect(begun).toEqual([1, 2]);
    expect(seen.map((entry) => Number(entry[0])).sort()).toEqual([3, 4, 5, 6]);
  });

  it('refuses a durable that is not its service’s', () => {
    expect(() => run(() => Promise.resolve(), { durable: 'agent-spec' })).toThrow('must begin with');
  });
});
