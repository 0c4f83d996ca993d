import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { createSeededRandom } from '@antiphon/testing/load';
import { startStack, type TestStack } from '@antiphon/testing/stack';
import { letTimePass } from '@antiphon/testing/waits';
import { FakePlatform } from './fake-platform.js';
import { readEvents, scriptedConfig, waitForValue } from './stack-under-test.js';

jest.setTimeout(900_000);

const DELIVERIES = Number(process.env['ANTIPHON_DELIVERIES'] ?? 1_000);
const SECRET = 'secret-of-the-nightly-channel';
const SERVICES = ['agent', 'gateway', 'sandbox', 'metering', 'memory'] as const;
const WORKERS = 8;
const KILL_EVERY_MS = 4_000;

let platform: FakePlatform;
let stack: TestStack;

beforeAll(async () => {
  platform = await FakePlatform.start();
  const config = scriptedConfig(`
[[agents]]
id = "main"
provider = "scripted"

[[channels]]
name = "mock"
base_url = "${platform.url}"
open = true
messages_per_minute = 10000
deliveries_per_second = 10000
`);
  stack = await startStack({ config, scale: { agent: 2, gateway: 2 } });
  for (const name of ['secret', 'token'])
    await fetch(`${stack.gatewayUrl}/api/v1/channels/mock/secrets/${name}`, {
      method: 'PUT',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ secret: SECRET }),
    });
});
afterAll(async () => {
  await stack?.stop();
  await platform?.close();
});

/** Delivers as a platform does: again until the status is 200, at whichever gateway answers. */
const deliver = async (n: number, random: () => number): Promise<void> => {
  const body = JSON.stringify({ id: `d-${n}`, from: `peer-${n % 50}`, text: `number ${n};` });
  for (;;) {
    const urls = stack.stackJson().urls.gateways;
    const url = urls[Math.floor(random() * urls.length)] ?? stack.gatewayUrl;
    const status = await fetch(`${url}/webhook/mock`, {
      ...{ method: 'POST', body, headers: { 'x-antiphon-channel-secret': SECRET } },
      signal: AbortSignal.timeout(20_000),
    }).then(
      (response) => response.status,
      () => 0,
    );
    if (status === 200) return;
    await letTimePass(200);
  }
};

/** Kills one process of a random service again and again. Returns the number of kills. */
const killUntil = async (isDone: () => boolean, random: () => number): Promise<number> => {
  let kills = 0;
  while (!isDone()) {
    await letTimePass(KILL_EVERY_MS);
    const service = SERVICES[kills % SERVICES.length] ?? 'agent';
    const running = stack.stackJson().services[service].filter(({ pid }) => pid);
    const victim = running[Math.floor(random() * running.length)]?.pid;
    if (!victim || isDone()) continue;
    process.kill(victim, 'SIGKILL');
    kills++;
  }
  return kills;
};

const END = new Set(['ChannelReplySent', 'ChannelReplyUnknown', 'ChannelReplyFailed']);

describe(`${DELIVERIES} deliveries with repeats, in another order, under kills of every service`, () => {
  it('are each answered at most once, and every answer that is not seen is a fact', async () => {
    const seeded = createSeededRandom(31);
    const random = (): number => seeded.below(1_000_000) / 1_000_000;
    const numbers = Array.from({ length: DELIVERIES }, (_, n) => n);
    const queue = [...numbers, ...numbers.filter(() => random() < 0.5)]
      .map((n) => ({ n, at: n + random() * 40 }))
      .sort((a, b) => a.at - b.at);
    let isDone = false;
    const killing = killUntil(() => isDone, random);
    const work = async (): Promise<void> => {
      for (let next = queue.shift(); next; next = queue.shift()) await deliver(next.n, random);
    };
    await Promise.all(Array.from({ length: WORKERS }, work));
    isDone = true;
    const kills = await killing;
    const ends = await waitForValue(
      'the end of each reply',
      async () => {
        const events = await readEvents(stack, { category: 'channel' }).catch(() => []);
        const found = events.filter(({ type }) => END.has(type));
        const ended = new Set(found.map(({ data }) => data['messageId']));
        return ended.size >= DELIVERIES ? found : undefined;
      },
      300_000,
    );
    const seen = new Map<number, number>();
    for (const { text } of platform.bodies<{ text: string }>(/^\/messages$/)) {
      const n = Number(/number (\d+);/.exec(text)?.[1]);
      seen.set(n, (seen.get(n) ?? 0) + 1);
    }
    const unknown = ends.filter(({ type }) => type === 'ChannelReplyUnknown').length;
    const failed = ends.filter(({ type }) => type === 'ChannelReplyFailed').length;
    const turns = (await readEvents(stack, { category: 'session' })).filter(
      ({ type }) => type === 'TurnRequested',
    );
    process.stdout.write(`${kills} kills, ${seen.size} answers seen, ${unknown} unknown, ${failed} failed\n`);
    expect(kills).toBeGreaterThan(DELIVERIES / 250);
    expect([...seen.values()].filter((count) => count > 1)).toEqual([]);
    expect(turns).toHaveLength(DELIVERIES);
    // An answer that was not seen has an attempt whose outcome was lost.
    expect(seen.size).toBeGreaterThanOrEqual(DELIVERIES - unknown - failed);
  });
});
