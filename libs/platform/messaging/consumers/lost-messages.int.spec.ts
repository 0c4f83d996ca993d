import { describe, expect, it } from '@jest/globals';
import type { WorkStarts } from '@antiphon/database';
import { createTrialLane } from '@antiphon/kernel';
import { silentLogger } from '@antiphon/observability';
import { createMemoryStarts, until } from '@antiphon/testing';
import { z } from 'zod';
import type { NatsLink } from '../link/nats-link.js';
import { createConsumerHost } from './consumer-host.js';
import { defineConsumer } from './define-consumer.js';
import { useConsumerWorld } from './testing/consumer-world.js';
import type { Handle, Message } from './testing/consumer-world.js';

describe('a message that ends each process which handles it', () => {
  const world = useConsumerWorld();

  const startProcess = (link: NatsLink, starts: WorkStarts, handle: Handle) => {
    const definition = defineConsumer({
      ...{ durable: 'metering-spec', subject: 'evt.*.session.>', schema: z.object({ n: z.number() }) },
      ...{ ackWaitMs: 400, handle: (given: Handle) => given },
    });
    return createConsumerHost({
      ...{ link, logger: silentLogger, starts, drainTimeoutMs: 50 },
      // Each process of the test has a lane of its own, as a process has.
      lane: createTrialLane(),
    }).run(definition, handle);
  };

  it('is a dead letter after three, and the messages next to it are handled', async () => {
    const starts = createMemoryStarts();
    const handled: number[] = [];
    let deaths = 0;
    for (const n of [1, 2, 3]) await world.publish(n);
    while (deaths < 3) {
      const link = await world.connect();
      const seen = deaths;
      startProcess(link, starts, async ({ n }: Message) => {
        if (n === 2) {
          deaths += 1;
          await link.connection.close();
          await new Promise(() => undefined);
        }
        handled.push(n);
      });
      await until(() => deaths > seen);
    }
    const link = await world.connect();
    const last = startProcess(link, starts, async ({ n }: Message) => void handled.push(n));
    await until(async () => (await world.deadLetters()).length === 1);
    expect(await world.deadLetters()).toMatchObject([{ code: 'MESSAGING.PROCESS_LOST', text: '{"n":2}' }]);
    await until(() => handled.includes(3));
    expect(new Set(handled)).toEqual(new Set([1, 3]));
    expect(deaths).toBe(3);
    expect([...starts.all]).toEqual([]);
    await last.stop();
    await link.drain();
  });

  /** Ends a process while it handles the message: it stops in order first, or does not. */
  const endProcess = async (starts: WorkStarts, how: 'stop' | 'kill', deaths: { count: number }) => {
    const link = await world.connect();
    const seen = deaths.count;
    const consumer = startProcess(link, starts, async () => {
      deaths.count += 1;
      await new Promise(() => undefined);
    });
    await until(() => deaths.count > seen);
    if (how === 'stop') await consumer.stop();
    await link.connection.close();
  };

  it('is handled after any number of processes that stopped in order', async () => {
    const starts = createMemoryStarts();
    const deaths = { count: 0 };
    await world.publish(1);
    for (let stops = 0; stops < 4; stops++) await endProcess(starts, 'stop', deaths);
    const link = await world.connect();
    const handled: number[] = [];
    const last = startProcess(link, starts, async ({ n }: Message) => void handled.push(n));
    await until(() => handled.length > 0);
    await last.stop();
    expect(await world.deadLetters()).toEqual([]);
    expect([...starts.all]).toEqual([]);
    await link.drain();
  });

  it('is a dead letter after three kills, however many stops are between them', async () => {
    const starts = createMemoryStarts();
    const deaths = { count: 0 };
    await world.publish(1);
    for (const how of ['stop', 'kill', 'stop', 'kill', 'stop', 'kill'] as const)
      await endProcess(starts, how, deaths);
    const link = await world.connect();
    const handled: number[] = [];
    const last = startProcess(link, starts, async ({ n }: Message) => void handled.push(n));
    await until(async () => (await world.deadLetters()).length === 1);
    expect(handled).toEqual([]);
    await last.stop();
    await link.drain();
  });
});
