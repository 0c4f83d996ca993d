import { describe, expect, it } from '@jest/globals';
import { jetstream } from '@nats-io/jetstream';
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
import { createLogger, currentContext } from '@antiphon/observability';
import { until } from '@antiphon/testing';
import { planned, useConsumerWorld } from './testing/consumer-world.js';

describe('consumer host', () => {
  const world = useConsumerWorld();

  it('passes each message to the handler once, parsed, in the context of its cause', async () => {
    const seen: unknown[] = [];
    world.run((message, meta) => {
      const { correlationId, causationId, service, workspace } = currentContext() ?? {};
      const caused = causationId === meta.messageId;
      seen.push({ ...message, ...meta, correlationId, caused, service, workspace });
      return Promise.resolve();
    });
    await world.publish(1);
    await world.settled();
    expect(seen).toMatchObject([
      {
        n: 1,
        subject: 'evt.default.session.one',
        sequence: 1,
        deliveryCount: 1,
        correlationId: 'req-1',
        caused: true,
        service: 'metering',
        workspace: 'default',
      },
    ]);
  });

  it.each([
    ['invalid', invalid],
    ['forbidden', forbidden],
    ['not_found', notFound],
    ['bug', bug],
  ])('stores a dead letter at once when the handler throws %s', async (_kind, make) => {
    const { seen, handle } = planned({ 1: () => make('TEST.REFUSED', 'no\r\nway') });
    world.run(handle);
    await world.publish(1);
    await world.publish(2);
    await world.settled();
    expect(seen.sort()).toEqual(['1:1', '2:1']);
    expect(await world.deadLetters()).toEqual([
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

  it('gathers messages between two filled pulls', async () => {
    const handledAt: number[] = [];
    const record = () => Promise.resolve(void handledAt.push(performance.now()));
    world.run(record, { concurrency: 1, gatherMs: 300 });
    await world.publish(1);
    await until(() => handledAt.length === 1);
    for (const n of [2, 3, 4]) await world.publish(n);
    await world.settled();
    const [first = 0, second = 0] = handledAt;
    // A timer may be 1 ms early.
    expect(second - first).toBeGreaterThanOrEqual(299);
    expect(handledAt).toHaveLength(4);
  });

  it('acknowledges a message that a rule rejects', async () => {
    const { seen, handle } = planned({ 1: () => rejected('TEST.RULE', 'no') });
    world.run(handle);
    await world.publish(1);
    await world.settled();
    expect(seen).toEqual(['1:1']);
    expect(await world.deadLetters()).toEqual([]);
  });

  it('retries after a conflict and gives up after five failures', async () => {
    const { seen, handle } = planned({
      1: (delivery) => (delivery < 3 ? conflict('TEST.CONFLICT', 'again') : undefined),
      2: () => conflict('TEST.CONFLICT', 'always'),
    });
    world.run(handle);
    await world.publish(1);
    await world.publish(2);
    await world.settled();
    expect(seen.filter((entry) => entry.startsWith('1'))).toEqual(['1:1', '1:2', '1:3']);
    expect(seen.filter((entry) => entry.startsWith('2'))).toHaveLength(5);
    expect(await world.deadLetters()).toMatchObject([
      { code: 'TEST.CONFLICT', deliveries: 5, text: '{"n":2}' },
    ]);
  });

  it('gives up after five unexpected errors, with an alert and without details in the dead letter', async () => {
    const lines: Record<string, unknown>[] = [];
    const sink = { write: (line: string) => void lines.push(JSON.parse(line) as Record<string, unknown>) };
    const { seen, handle } = planned({ 1: () => new TypeError('secret of /srv') });
    world.run(handle, {}, { logger: createLogger({ service: 'metering', sink }) });
    await world.publish(1);
    await world.settled();
    expect(seen).toHaveLength(5);
    const [letter] = await world.deadLetters();
    expect(letter?.code).toBe('INTERNAL.UNEXPECTED');
    expect(letter?.reason).not.toContain('secret');
    expect(lines.find((line) => line['alert'] === true)).toMatchObject({
      level: 'error',
      correlationId: 'req-1',
    });
  });

  it('retries a message through an outage of any length', async () => {
    const { seen, handle } = planned({
      1: (delivery) => (delivery < 9 ? transient('TEST.DOWN', 'down') : undefined),
      2: (delivery) =>
        delivery < 9 ? exhausted('TEST.QUOTA', 'full', { data: { retryAfterSeconds: 0.02 } }) : undefined,
    });
    world.run(handle);
    await world.publish(1);
    await world.publish(2);
    await world.settled();
    expect(seen.filter((entry) => entry.startsWith('1'))).toHaveLength(9);
    expect(seen.filter((entry) => entry.startsWith('2'))).toHaveLength(9);
    expect(await world.deadLetters()).toEqual([]);
  });

  it.each([
    ['bytes that are no text', new Uint8Array([0xff, 0xfe])],
    ['text that is no JSON', 'nope'],
    ['JSON of another shape', '{"n":"x"}'],
    ['nothing', ''],
  ])('stores %s as a dead letter with the reason and continues', async (_what, payload) => {
    const { seen, handle } = planned({});
    world.run(handle);
    await jetstream(world.link.connection).publish('evt.default.session.one', payload);
    await world.publish(2);
    await world.settled();
    expect(seen).toEqual(['2:1']);
    expect(await world.deadLetters()).toMatchObject([{ code: 'MESSAGING.INVALID' }]);
  });

  it('skips types that it does not handle', async () => {
    const { seen, handle } = planned({});
    world.run(handle, { types: ['Counted'] });
    await world.publish(1, { subject: 'evt.default.session.one', type: 'Other' });
    await world.publish(2);
    await world.settled();
    expect(seen).toEqual(['2:1']);
  });

  it('keeps the order within a subject when a message fails', async () => {
    const { handle } = planned({
      1: (delivery) => (delivery < 3 ? conflict('TEST.CONFLICT', 'again') : undefined),
      3: (delivery) => (delivery < 6 ? transient('TEST.DOWN', 'down') : undefined),
    });
    const done: number[] = [];
    world.run(
      async (message, meta) => {
        await handle(message, meta);
        done.push(message.n);
      },
      { order: 'subject' },
    );
    for (let n = 1; n <= 5; n++) await world.publish(n, { subject: 'evt.default.session.ordered' });
    await world.publish(9, { subject: 'evt.default.session.other' });
    await world.settled();
    expect(done.filter((n) => n < 9)).toEqual([1, 2, 3, 4, 5]);
    expect(done[0]).toBe(9);
  });

  it('handles at most the configured number of messages at once', async () => {
    let begun = 0;
    let release: () => void = () => {};
    const released = new Promise<void>((resolve) => (release = resolve));
    world.run(
      async () => {
        begun++;
        await released;
      },
      { concurrency: 3 },
    );
    for (let n = 0; n < 60; n++) await world.publish(n);
    await until(() => begun === 3);
    // All other delivered messages arrive before the response to the ping.
    await world.link.connection.flush();
    expect(begun).toBe(3);
    release();
    await world.settled();
    expect(begun).toBe(60);
  });

  it('rejects a durable of another service', () => {
    expect(() => world.run(() => Promise.resolve(), { durable: 'agent-spec' })).toThrow('must begin with');
  });
});
