import { describe, expect, it } from '@jest/globals';
import { invalid } from '@antiphon/kernel';
import { until } from '@antiphon/testing';
import { STREAMS, ensureStream } from '../link/streams.js';
import { planned, silentDeliveries, useConsumerWorld } from './testing/consumer-world.js';

describe('consumer host under failure', () => {
  const world = useConsumerWorld();

  it('keeps a message from redelivery while its handler runs long', async () => {
    const { seen, handle } = planned({});
    let release: () => void = () => {};
    const released = new Promise<void>((resolve) => (release = resolve));
    world.run(
      async (message, meta) => {
        await handle(message, meta);
        if (message.n === 1) await released;
      },
      { ackWaitMs: 300 },
    );
    await world.publish(1);
    await until(() => seen.length === 1);
    // A consumer without heartbeats gets the same message several times in the same time.
    await until(async () => (await silentDeliveries(world, 1)) >= 4);
    release();
    await world.settled();
    expect(seen).toEqual(['1:1']);
  });

  it('takes over the messages of a process that died', async () => {
    const dying = await world.connect();
    const abandoned: string[] = [];
    world.run(
      ({ n }, { deliveryCount }) => {
        abandoned.push(`${n}:${deliveryCount}`);
        return new Promise(() => {});
      },
      { ackWaitMs: 500 },
      { link: dying },
    );
    await world.publish(1);
    await until(() => abandoned.length === 1);
    await dying.connection.close();
    world.abandon();
    const { seen, handle } = planned({});
    world.run(handle, { ackWaitMs: 500 });
    await world.settled();
    expect(seen).toEqual(['1:2']);
  });

  it('continues after its stream is deleted and recreated', async () => {
    const { seen, handle } = planned({});
    const { consumer } = world.run(handle);
    await world.publish(1);
    await world.settled();
    await world.manager.streams.delete('EVENTS');
    await until(() => !consumer.isConsuming());
    await ensureStream(world.manager, STREAMS.EVENTS);
    await world.publish(2);
    await world.settled();
    expect(seen).toEqual(['1:1', '2:1']);
  });

  it('continues after its consumer and the dead letters are deleted', async () => {
    const { seen, handle } = planned({ 2: () => invalid('TEST.BAD', 'bad') });
    const { consumer } = world.run(handle);
    await world.publish(1);
    await world.settled();
    await world.manager.streams.delete('DLQ');
    await world.manager.consumers.delete('EVENTS', 'metering-spec');
    await until(() => !consumer.isConsuming());
    await world.publish(2);
    await world.settled();
    expect(seen.filter((entry) => entry.startsWith('2'))).toEqual(['2:1']);
    expect(await world.deadLetters()).toHaveLength(1);
  });

  it('continues after NATS was killed and after it lost its data', async () => {
    const seen = new Set<number>();
    world.run(({ n }) => Promise.resolve(void seen.add(n)));
    await world.publish(1);
    await world.settled();
    await world.server.kill();
    await world.server.start();
    await until(() => world.link.isConnected());
    await world.publish(2);
    // A message acknowledged just before the crash may be redelivered: the server had not stored
    // that.
    await until(() => seen.has(2));
    await world.server.kill();
    await world.server.wipe();
    await world.server.start();
    await until(() => world.link.isConnected());
    await ensureStream(world.manager, STREAMS.EVENTS);
    await world.publish(3);
    await until(() => seen.has(3));
  });

  it('finishes started messages at shutdown and returns the others', async () => {
    let release: () => void = () => {};
    const released = new Promise<void>((resolve) => (release = resolve));
    const begun: number[] = [];
    const { host } = world.run(
      async ({ n }) => {
        begun.push(n);
        await released;
      },
      { concurrency: 2 },
    );
    for (let n = 1; n <= 6; n++) await world.publish(n);
    await until(() => begun.length === 2);
    const stopped = host.stop();
    release();
    await stopped;
    const { seen, handle } = planned({});
    world.run(handle);
    await world.settled();
    expect(begun).toEqual([1, 2]);
    expect(seen.map((entry) => Number(entry[0])).sort()).toEqual([3, 4, 5, 6]);
  });
});
