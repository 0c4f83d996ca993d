import { afterAll, afterEach, beforeAll, beforeEach, jest } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { AckPolicy, jetstream } from '@nats-io/jetstream';
import type { JetStreamManager } from '@nats-io/jetstream';
import { headers, nanos } from '@nats-io/transport-node';
import { z } from 'zod';
import { silentLogger } from '@antiphon/observability';
import { startNatsServer, until } from '@antiphon/testing';
import type { TestNatsServer } from '@antiphon/testing';
import { createConsumerHost } from '../consumer-host.js';
import type { ConsumerHost, RunningConsumer } from '../consumer-host.js';
import { DLQ_HEADERS } from '../dead-letters.js';
import { defineConsumer } from '../define-consumer.js';
import type { ConsumerDefinition, MessageMeta } from '../define-consumer.js';
import { EVENT_HEADERS } from '../../relay/event-message.js';
import { connectNats } from '../../link/nats-link.js';
import type { NatsLink } from '../../link/nats-link.js';
import { STREAMS, ensureStream, openJetStreamManager } from '../../link/streams.js';

const Message = z.object({ n: z.number() });
export type Message = z.infer<typeof Message>;
export type Handle = (message: Message, meta: MessageMeta) => Promise<void>;
export type Definition = ConsumerDefinition<typeof Message, Handle>;

/** Provides a nats-server with fresh streams for each test, and consumers of `{n}` on it. */
export interface ConsumerWorld {
  readonly server: TestNatsServer;
  readonly link: NatsLink;
  readonly manager: JetStreamManager;
  connect(): Promise<NatsLink>;
  run(
    handle: Handle,
    options?: Partial<Definition>,
    on?: { link?: NatsLink; logger?: typeof silentLogger },
  ): { host: ConsumerHost; consumer: RunningConsumer };
  /** Forgets the running consumers: they are not stopped after the test. */
  abandon(): void;
  publish(n: number, options?: { subject?: string; type?: string; id?: string }): Promise<void>;
  /** Waits until every published message has been acknowledged or given up. */
  settled(): Promise<void>;
  deadLetters(): Promise<readonly Record<string, unknown>[]>;
}

const DURABLE = 'metering-spec';

const readDeadLetters = async (link: NatsLink, manager: JetStreamManager) => {
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

const publishTo: (link: NatsLink) => ConsumerWorld['publish'] =
  (link) =>
  async (n, { subject = 'evt.default.session.one', type = 'Counted', id = randomUUID() } = {}) => {
    const carried = headers();
    carried.set(EVENT_HEADERS.type, type);
    carried.set('x-correlation-id', `req-${n}`);
    await jetstream(link.connection).publish(subject, JSON.stringify({ n }), { msgID: id, headers: carried });
  };

const runOn = (link: NatsLink, logger: typeof silentLogger, handle: Handle, options: Partial<Definition>) => {
  const host = createConsumerHost({ link, logger });
  const definition = defineConsumer<typeof Message, Handle>({
    durable: DURABLE,
    subject: 'evt.*.session.>',
    schema: Message,
    policy: { backoffMs: [20] },
    handle: (given) => given,
    ...options,
  });
  return { host, consumer: host.run(definition, handle) };
};

/**
 * Takes a message without acknowledging it, with an ack wait of 300 ms. Returns how often it has
 * been delivered.
 */
export const silentDeliveries = async (
  { manager, link }: ConsumerWorld,
  sequence: number,
): Promise<number> => {
  const config = { durable_name: 'silent', ack_policy: AckPolicy.Explicit, ack_wait: nanos(300) };
  await manager.consumers.add('EVENTS', config);
  const consumer = await jetstream(link.connection).consumers.get('EVENTS', 'silent');
  const message = await consumer.next({ expires: 1_000 });
  return message?.seq === sequence ? message.info.deliveryCount : 0;
};

/**
 * Makes a handler that throws by a plan for each number, and records deliveries as `n:delivery`.
 */
export const planned = (plan: Record<number, (delivery: number) => unknown>) => {
  const seen: string[] = [];
  const handle: Handle = ({ n }, { deliveryCount }) => {
    seen.push(`${n}:${deliveryCount}`);
    const error = plan[n]?.(deliveryCount);
    return error === undefined ? Promise.resolve() : Promise.reject(error as Error);
  };
  return { seen, handle };
};

/** Registers the hooks that create and clear the world; call it once inside a `describe`. */
export const useConsumerWorld = (): ConsumerWorld => {
  jest.setTimeout(30_000);
  const hosts: ConsumerHost[] = [];
  let server: TestNatsServer;
  let link: NatsLink;
  let manager: JetStreamManager;
  const connect = () => connectNats({ url: server.url, service: 'metering', logger: silentLogger });
  // The count of pending messages lags behind a publish; the acknowledgement floor is exact.
  const isSettled = async (): Promise<boolean> => {
    const { state } = await manager.streams.info('EVENTS');
    const { ack_floor } = await manager.consumers.info('EVENTS', DURABLE);
    return ack_floor.stream_seq === state.last_seq;
  };

  /** Recreates a stream. At first it may still contain the old one's messages (docs/adr/0022). */
  const isNewStream = async (name: 'EVENTS' | 'DLQ'): Promise<boolean> => {
    await manager.streams.delete(name).catch(() => false);
    await ensureStream(manager, STREAMS[name]);
    return (await manager.streams.info(name)).state.last_seq === 0;
  };

  beforeAll(async () => {
    server = await startNatsServer();
  });
  afterAll(() => server.remove());
  beforeEach(async () => {
    link = await connect();
    manager = await openJetStreamManager(link.connection);
    for (const name of ['EVENTS', 'DLQ'] as const) await until(() => isNewStream(name));
  });
  afterEach(async () => {
    const stopped = hosts.splice(0).map((host) => host.stop());
    // Ends their last pull requests, which would otherwise expire within a second.
    await manager.consumers.delete('EVENTS', DURABLE).catch(() => false);
    await Promise.all(stopped);
    await link.drain();
  });

  return {
    get server() {
      return server;
    },
    get link() {
      return link;
    },
    get manager() {
      return manager;
    },
    connect,
    run: (handle, options = {}, on = {}) => {
      const running = runOn(on.link ?? link, on.logger ?? silentLogger, handle, options);
      hosts.push(running.host);
      return running;
    },
    abandon: () => void hosts.splice(0),
    publish: (n, options) => publishTo(link)(n, options),
    settled: () => until(() => isSettled().catch(() => false)),
    deadLetters: () => readDeadLetters(link, manager),
  };
};
