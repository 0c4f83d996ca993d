import { describe, expect, it } from '@jest/globals';
import { connectNats } from '@antiphon/messaging';
import type { NatsLink } from '@antiphon/messaging';
import { silentLogger } from '@antiphon/observability';
import { until } from '@antiphon/testing';
import { listDeadLetters } from './dead-letters.js';
import { replayDeadLetter } from './replay-dead-letters.js';
import type { MessageMeta } from './define-consumer.js';
import { useConsumerWorld } from './testing/consumer-world.js';

describe('dead letters', () => {
  const world = useConsumerWorld();
  const asOperator = async <T>(work: (link: NatsLink) => Promise<T>): Promise<T> => {
    const link = await connectNats({ url: world.server.url, service: 'operator', logger: silentLogger });
    try {
      return await work(link);
    } finally {
      await link.drain();
    }
  };

  it('are listed with their reason, stay after a failed replay and are deleted after a successful one', async () => {
    let isFixed = false;
    const seen: (MessageMeta & { n: number })[] = [];
    world.run(({ n }, meta) => {
      seen.push({ n, ...meta });
      return n === 2 && !isFixed ? Promise.reject(new Error('no such column')) : Promise.resolve();
    });
    await world.publish(1);
    await world.publish(2, { id: 'poison' });
    await world.publish(3);
    await world.settled();
    expect(seen.filter(({ n }) => n === 2)).toHaveLength(5);
    expect(seen.map(({ n }) => n)).toContain(3);

    await asOperator(async (link) => {
      const [letter, ...others] = await listDeadLetters(link);
      expect(others).toEqual([]);
      expect(letter).toMatchObject({
        ...{ consumer: 'metering-spec', subject: 'evt.default.session.one', deliveries: 5 },
        ...{ code: 'INTERNAL.UNEXPECTED' },
      });
      expect(letter?.reason).not.toBe('');
      await expect(replayDeadLetter(link, letter!)).rejects.toMatchObject({ kind: 'bug' });
      expect(await listDeadLetters(link)).toHaveLength(1);

      isFixed = true;
      await replayDeadLetter(link, letter!);
      expect(seen.at(-1)).toMatchObject({ n: 2, messageId: 'poison', sequence: 2, deliveryCount: 6 });
      expect(await listDeadLetters(link)).toEqual([]);
    });
  });

  it('stay when no process of the service responds to the replay', async () => {
    const { host } = world.run(() => Promise.reject(new Error('always')), { policy: { maxFailures: 1 } });
    await world.publish(1);
    await until(async () => (await world.deadLetters()).length === 1);
    await host.stop();
    await asOperator(async (link) => {
      const [letter] = await listDeadLetters(link);
      await expect(replayDeadLetter(link, letter!)).rejects.toMatchObject({
        code: 'MESSAGING.NO_RESPONDERS',
        kind: 'transient',
      });
      expect(await listDeadLetters(link)).toHaveLength(1);
    });
  });
});
