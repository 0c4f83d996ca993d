import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { silentLogger } from '@antiphon/observability';
import { createLogNotifier, onLogNotification } from './log-notification.js';
import { connectNats } from './nats-link.js';
import type { NatsLink } from './nats-link.js';

let link: NatsLink;
beforeAll(async () => {
  const url = process.env['ANTIPHON_TEST_NATS_URL'] ?? '';
  link = await connectNats({ url, service: 'memory', logger: silentLogger });
});
afterAll(() => link.drain());

describe('log notifications', () => {
  it('wake every subscriber of a connection until it unsubscribes, by one NATS subscription', async () => {
    const before = link.connection.stats().outMsgs;
    const woken = { first: 0, second: 0 };
    let settle: () => void = () => undefined;
    const next = () => new Promise<void>((resolve) => (settle = resolve));
    const unsubscribeFirst = onLogNotification(link, () => void (woken.first += 1));
    const unsubscribeSecond = onLogNotification(link, () => {
      woken.second += 1;
      settle();
    });
    const notify = createLogNotifier(link);
    const both = next();
    for (let i = 0; i < 5; i++) notify(new Set(['session']));
    await both;
    expect(woken.first).toBeGreaterThan(0);
    expect(link.connection.stats().outMsgs - before).toBe(1);
    unsubscribeFirst();
    const seen = woken.first;
    const one = next();
    notify(new Set(['session']));
    await one;
    expect(woken.first).toBe(seen);
    unsubscribeSecond();
  });

  it('are sent to no connection without subscribers', async () => {
    const options = { url: process.env['ANTIPHON_TEST_NATS_URL'] ?? '', service: 'agent' };
    const publisher = await connectNats({ ...options, logger: silentLogger });
    const received = async (): Promise<number> => {
      const before = link.connection.stats().inMsgs;
      publisher.connection.publish('hint.log', 'session');
      await publisher.connection.flush();
      await link.connection.flush();
      return link.connection.stats().inMsgs - before;
    };
    expect(await received()).toBe(0);
    const stops = [onLogNotification(link, () => undefined), onLogNotification(link, () => undefined)];
    await link.connection.flush();
    expect(await received()).toBe(1);
    stops[0]?.();
    stops[0]?.();
    expect(await received()).toBe(1);
    stops[1]?.();
    await link.connection.flush();
    expect(await received()).toBe(0);
    let wake: () => void = () => undefined;
    const woken = new Promise<void>((resolve) => (wake = resolve));
    const stop = onLogNotification(link, wake, { debounceMs: 1 });
    await link.connection.flush();
    expect(await received()).toBe(1);
    await woken;
    stop();
    await publisher.drain();
  });

  it('wake the subscribers of the categories that were appended, and all if none is named', async () => {
    const woken: string[] = [];
    const on = (name: string, categories: readonly string[]) =>
      onLogNotification(link, () => void woken.push(name), { debounceMs: 1, categories });
    const stops = [on('sessions', ['session']), on('runs', ['run', 'workflow']), on('budgets', ['budget'])];
    const arrivals = (): Promise<void> =>
      new Promise((resolve) => {
        const stop = onLogNotification(link, () => (stop(), resolve()), { debounceMs: 30 });
      });
    const notify = createLogNotifier(link);
    const first = arrivals();
    notify(new Set(['session']));
    notify(new Set(['budget']));
    await first;
    expect(woken.splice(0).toSorted()).toEqual(['budgets', 'sessions']);
    const second = arrivals();
    notify(new Set());
    await second;
    expect(woken.toSorted()).toEqual(['budgets', 'runs', 'sessions']);
    for (const stop of stops) stop();
  });
});
