import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { jetstream } from '@nats-io/jetstream';
import type { NatsConnection } from '@nats-io/transport-node';
import { z } from 'zod';
import { SERVICES, healthContract } from '@antiphon/contracts/messaging';
import type { ServiceName } from '@antiphon/contracts/messaging';
import { silentLogger } from '@antiphon/observability';
import { startNatsServer, until } from '@antiphon/testing';
import type { TestNatsServer } from '@antiphon/testing';
import { createConsumerHost } from './consumers/consumer-host.js';
import { defineConsumer } from './consumers/define-consumer.js';
import { connectNats } from './link/nats-link.js';
import type { NatsLink } from './link/nats-link.js';
import { natsPermissions } from './permissions.js';
import { createRequestClient } from './requests/request-client.js';
import { STREAMS, ensureStream, openJetStreamManager } from './link/streams.js';

const PASSWORD = 'test-only';
const users = SERVICES.map((service) => {
  const { publish, subscribe, allowResponses } = natsPermissions(service);
  const permissions = { publish, subscribe, allow_responses: allowResponses };
  return { user: service, password: PASSWORD, permissions };
});

let server: TestNatsServer;
const links = {} as Record<ServiceName, NatsLink>;

/** Runs an action and returns the server's refusal, undefined if there is none. */
const violation = async (
  service: ServiceName,
  act: (connection: NatsConnection) => void,
): Promise<string | undefined> => {
  const { connection } = await connectNats({
    url: server.url,
    user: service,
    password: PASSWORD,
    service,
    logger: silentLogger,
  });
  const refusals: string[] = [];
  const listening = (async () => {
    for await (const status of connection.status())
      if (status.type === 'error') refusals.push(status.error.message);
  })();
  act(connection);
  // The server responds in order: a refusal arrives before the response to the ping.
  await connection.flush();
  await connection.close();
  await listening;
  return refusals[0];
};

describe('permissions', () => {
  beforeAll(async () => {
    server = await startNatsServer({ config: `authorization ${JSON.stringify({ users })}` });
    for (const service of SERVICES)
      links[service] = await connectNats({
        url: server.url,
        user: service,
        password: PASSWORD,
        service,
        logger: silentLogger,
      });
  });
  afterAll(async () => {
    await Promise.all(Object.values(links).map((link) => link.drain()));
    await server.remove();
  });

  it.each<[ServiceName, string]>([
    ['sandbox', 'evt.default.session.session-1'],
    ['sandbox', 'live.default.session-1'],
    ['sandbox', 'cmd.metering.budget.reserve'],
    ['sandbox', '_INBOX.gateway.guessed.token'],
    ['sandbox', '$JS.API.STREAM.DELETE.EVENTS'],
    ['metering', 'evt.default.session.session-1'],
    ['metering', 'dlq.memory-other'],
    ['metering', '$JS.ACK.EVENTS.memory-other.1.1.1.1.1'],
    ['metering', '$JS.API.CONSUMER.DELETE.EVENTS.metering-settle-calls'],
    ['memory', 'cmd.agent.turn.submit'],
    ['gateway', 'cmd.sandbox.tool.call'],
    ['gateway', 'cmd.sandbox.call.find'],
    ['gateway', 'cmd.sandbox.tool.list'],
    ['gateway', 'cmd.metering.budget.reserve'],
    ['gateway', 'cmd.metering.budget.settle'],
    ['gateway', 'cmd.metering.budget.unfreeze'],
    ['gateway', 'cmd.metering.reservation.expire'],
    ['gateway', 'cmd.metering.replay.metering-settle-calls'],
    ['gateway', 'cmd.memory.context.assemble'],
    ['gateway', 'cmd.memory.context.assemble'],
    ['gateway', 'hint.agent.wake'],
    ['gateway', 'hint.sandbox.cancel'],
    ['agent', 'cmd.metering.budget.unfreeze'],
    ['agent', 'cmd.metering.replay.metering-settle-calls'],
    ['agent', 'cmd.gateway.health.check'],
    ['gateway', 'live.default.session-1'],
    ['gateway', 'evt.default.session.session-1'],
    ['agent', 'evt.default.session.session-1'],
    ['agent', '$JS.API.STREAM.PURGE.LIVE'],
    ['agent', '_INBOX.metering.guessed.token'],
  ])('%s cannot publish %s', async (service, subject) => {
    expect(await violation(service, (connection) => connection.publish(subject))).toMatch(
      /Permissions Violation for Publish/,
    );
  });

  it.each<[ServiceName, string]>([
    ['agent', 'cmd.metering.>'],
    ['sandbox', 'cmd.agent.>'],
    ['sandbox', 'live.>'],
    ['sandbox', 'evt.>'],
    ['sandbox', '>'],
    ['metering', 'evt.>'],
    ['gateway', 'evt.>'],
    ['memory', '_INBOX.>'],
    ['gateway', '_INBOX.agent.>'],
    ['agent', '$JS.EVENT.ADVISORY.>'],
  ])('%s cannot subscribe to %s', async (service, subject) => {
    const refused = await violation(service, (connection) =>
      connection.subscribe(subject, { callback: () => {} }),
    );
    expect(refused).toMatch(/Permissions Violation for Subscription/);
  });

  it.each<[ServiceName, string]>([
    ...(['agent', 'sandbox', 'metering', 'memory'] as const).map((other): [ServiceName, string] => [
      'gateway',
      `cmd.${other}.health.check`,
    ]),
    ['gateway', 'cmd.sandbox.plugin.list'],
    ['gateway', 'cmd.agent.turn.submit'],
    ['gateway', 'cmd.agent.approval.answer'],
    ['agent', 'cmd.sandbox.tool.call'],
    ['agent', 'cmd.metering.budget.settle'],
    ['agent', 'cmd.memory.context.assemble'],
    ['memory', 'hint.turn-end.default.session-1'],
  ])('%s can publish %s', async (service, subject) =>
    expect(await violation(service, (connection) => connection.publish(subject))).toBeUndefined(),
  );

  it('report a forbidden request to the caller', async () => {
    const client = createRequestClient(links.sandbox);
    await expect(client.request(healthContract('metering'), {})).rejects.toMatchObject({
      kind: 'forbidden',
      code: 'MESSAGING.FORBIDDEN',
    });
  });

  it('leave a request to one process to any process, where they know no such subject', async () => {
    const health = { ...healthContract('agent'), subject: 'cmd.agent.turn.submit', toProcess: true } as const;
    const report = { service: 'agent', healthy: true, pid: 1, uptimeMs: 1, version: '0', checks: [] };
    const subscription = links.agent.connection.subscribe(health.subject, {
      callback: (_error, message) => void message.respond(JSON.stringify({ ok: true, result: report })),
    });
    await links.agent.connection.flush();
    const client = createRequestClient(links.agent);
    expect(await client.request(health, {}, { processId: 'one' })).toMatchObject(report);
    subscription.unsubscribe();
  });

  it('allow one reply to each received request and no other', async () => {
    const answers: string[] = [];
    const { connection } = links.sandbox;
    const subscription = connection.subscribe('cmd.sandbox.>', {
      queue: 'sandbox',
      callback: (_error, message) => {
        message.respond('first');
        message.respond('second');
      },
    });
    await connection.flush();
    const inbox = '_INBOX.agent.spec';
    const listening = links.agent.connection.subscribe(inbox, {
      callback: (_error, message) => void answers.push(message.string()),
    });
    links.agent.connection.publish('cmd.sandbox.tool.call', '', { reply: inbox });
    await until(() => answers.length > 0);
    await connection.flush();
    await links.agent.connection.flush();
    expect(answers).toEqual(['first']);
    subscription.unsubscribe();
    listening.unsubscribe();
  });

  it('suffice for the relay, the frames and a consumer with its dead letters', async () => {
    await ensureStream(await openJetStreamManager(links.memory.connection), STREAMS.EVENTS);
    await ensureStream(await openJetStreamManager(links.agent.connection), STREAMS.LIVE);
    const handled: number[] = [];
    const host = createConsumerHost({ link: links.metering, logger: silentLogger });
    const consumer = defineConsumer({
      durable: 'metering-settle-calls',
      subject: 'evt.*.session.>',
      schema: z.object({ n: z.number() }),
      handle:
        () =>
        ({ n }) =>
          Promise.resolve(void handled.push(n)),
    });
    host.run(consumer, undefined);
    const relay = jetstream(links.memory.connection);
    await relay.publish('evt.default.session.session-1', 'not json');
    await relay.publish('evt.default.session.session-1', '{"n":1}');
    const dlq = await openJetStreamManager(links.metering.connection);
    await until(async () => (await dlq.streams.info('DLQ').catch(() => null))?.state.messages === 1);
    await until(() => handled.length === 1);
    links.agent.connection.publish('live.default.session-1', 'frame');
    const live = await openJetStreamManager(links.gateway.connection);
    await until(async () => (await live.streams.info('LIVE')).state.messages === 1);
    const frame = await live.direct.getMessage('LIVE', { last_by_subj: 'live.default.session-1' });
    expect(frame?.string()).toBe('frame');
    await host.stop();
  });

  it('reject a wrong password at once', async () => {
    const options = {
      url: server.url,
      user: 'agent',
      password: 'wrong',
      service: 'agent',
      logger: silentLogger,
    };
    await expect(connectNats(options)).rejects.toMatchObject({ code: 'MESSAGING.UNAVAILABLE' });
  });
});
