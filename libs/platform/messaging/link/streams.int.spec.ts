import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { silentLogger } from '@antiphon/observability';
import { startNatsServer } from '@antiphon/testing';
import type { TestNatsServer } from '@antiphon/testing';
import { connectNats } from './nats-link.js';
import type { NatsLink } from './nats-link.js';
import { STREAMS, ensureStream, openJetStreamManager } from './streams.js';

let server: TestNatsServer;
let link: NatsLink;
beforeAll(async () => {
  // The file store of the managed engine.
  server = await startNatsServer({ jetstream: 'max_file_store: 8192MB' });
  link = await connectNats({ url: server.url, service: 'memory', logger: silentLogger });
});
afterAll(async () => {
  await link.drain();
  await server.remove();
});

describe('the streams', () => {
  it('are ensured again while they fill more than half of the file store', async () => {
    const manager = await openJetStreamManager(link.connection);
    await ensureStream(manager, { ...STREAMS.EVENTS, first_seq: 8 });
    for (const spec of [STREAMS.DLQ, STREAMS.LIVE, STREAMS.EVENTS, STREAMS.DLQ])
      await ensureStream(manager, spec);
    expect((await manager.streams.info('EVENTS')).config).toMatchObject({
      max_bytes: STREAMS.EVENTS.max_bytes,
    });
  });

  it('that do not fit are refused', async () => {
    const manager = await openJetStreamManager(link.connection);
    const big = {
      ...STREAMS.DLQ,
      name: 'BIG',
      subjects: ['big.>'],
      max_bytes: 4_096 * 1_024 * 1_024,
    } as unknown;
    await expect(ensureStream(manager, big as typeof STREAMS.DLQ)).rejects.toMatchObject({ code: 10_047 });
  });
});
