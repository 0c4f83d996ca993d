import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { connectNats, ensureStream, openJetStreamManager, STREAMS } from '@antiphon/messaging';
import type { NatsLink } from '@antiphon/messaging';
import { silentLogger, systemClock } from '@antiphon/observability';
import { startNatsServer, until } from '@antiphon/testing';
import type { TestNatsServer } from '@antiphon/testing';
import { createFaultyLink } from '@antiphon/testing/network';
import type { FaultyLink } from '@antiphon/testing/network';
import { createNatsFrameBus } from './nats-frame-bus.js';
import type { FrameBus } from './session-feeds.js';

const SUBJECT = 'live.default.s1';
let server: TestNatsServer;
let network: FaultyLink;
let driver: NatsLink;
let gateway: NatsLink;
let bus: FrameBus;

beforeAll(async () => {
  server = await startNatsServer();
  network = await createFaultyLink({ targetPort: Number(new URL(server.url).port) });
  const logger = silentLogger;
  driver = await connectNats({ url: server.url, service: 'agent', logger });
  gateway = await connectNats({ url: `nats://127.0.0.1:${network.port}`, service: 'gateway', logger });
  bus = createNatsFrameBus(gateway);
  const manager = await openJetStreamManager(driver.connection);
  await ensureStream(manager, STREAMS.LIVE);
  for (const text of ['a', 'b', 'c']) driver.connection.publish(SUBJECT, text);
  await until(async () => (await manager.streams.info('LIVE')).state.messages === 3);
});
afterAll(async () => {
  network?.heal();
  await Promise.all([gateway?.drain(), driver?.drain()]);
  await network?.close();
  await server?.remove();
});

const recall = async (subject = SUBJECT): Promise<string[]> => {
  const texts: string[] = [];
  await bus.replay(subject, systemClock.now(), (text) => texts.push(text));
  return texts;
};
/** Subscriptions that the library holds; not part of its public interface. */
const subscriptions = (): number =>
  (
    gateway.connection as unknown as { protocol: { subscriptions: { size(): number } } }
  ).protocol.subscriptions.size();

describe('FrameBus.replay', () => {
  it('returns the messages of a session in order, also to concurrent calls, and leaves no subscription behind', async () => {
    const before = subscriptions();
    const all = await Promise.all(Array.from({ length: 20 }, () => recall()));
    expect(all).toEqual(all.map(() => ['a', 'b', 'c']));
    expect(await recall('live.default.unknown')).toEqual([]);
    expect(subscriptions()).toBe(before);
  });

  it('rejects when the connection is lost before the end, and works again afterwards', async () => {
    network.cut();
    const cut = recall();
    const failed = expect(cut).rejects.toThrow('LIVE was not read to its end');
    // The request is in flight, and its response never arrives.
    await new Promise(setImmediate);
    network.reset(() => true);
    network.heal();
    await failed;
    await until(() => gateway.isConnected());
    expect(await recall()).toEqual(['a', 'b', 'c']);
  });
});
