import { describe, expect, it } from '@jest/globals';
import type { WorkStarts } from '@antiphon/database';
import { silentLogger } from '@antiphon/observability';
import { until } from '@antiphon/testing';
import { z } from 'zod';
import type { NatsLink } from '../link/nats-link.js';
import { createConsumerHost } from './consumer-host.js';
import { defineConsumer } from './define-consumer.js';
import { useConsumerWorld } from './testing/consumer-world.js';
import type { Handle, Message } from './testing/consumer-world.js';

/** Counts in memory, which the processes of this spec share. */
const createStarts = (): WorkStarts & { readonly all: ReadonlyMap<string, number> } => {
  const all = new Map<string, number>();
  return {
    all,
    read: async (kind, item) => all.get(`${kind} ${item}`) ?? 0,
    begin: async (kind, item) => {
      all.set(`${kind} ${item}`, (all.get(`${kind} ${item}`) ?? 0) + 1);
      return all.get(`${kind} ${item}`) ?? 0;
    },
    end: async (kind, item) => void all.delete(`${kind} ${item}`),
  };
};

describe('a message that ends each process which handles it', () => {
  const world = useConsumerWorld();

  const startProcess = (link: NatsLink, starts: WorkStarts, handle: Handle) => {
    const definition = defineConsumer({
      ...{ durable: 'metering-spec', subject: 'evt.*.session.>', schema: z.object({ n: z.number() }) },
      ...{ ackWaitMs: 400, handle: (given: Handle) => given },
    });
    return createConsumerHost({ link, logger: silentLogger, starts }).run(definition, handle);
  };

  it('is a dead letter after three, and the messages next to it are handled', async () => {
    const starts = createStarts();
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
});
