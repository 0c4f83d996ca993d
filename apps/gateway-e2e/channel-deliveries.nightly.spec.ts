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

/** Kills one process of a random service again and again. Returns the names of the killed. */
const killUntil = async (isDone: () => boolean, random: () => number): Promise<string[]> => {
  const kills: string[] = [];
  while (!isDone()) {
    await letTimePass(KILL_EVERY_MS);
    const service = SERVICES[kills.length % SERVICES.length] ?? 'agent';
    const running = stack.stackJson().services[service].filter(({ pid }) => pid);
    const victim = running[Math.floor(random() * running.length)]?.pid;
    if (!victim || isDone()) continue;
    process.kill(victim, 'SIGKILL');
    kills.push(service);
  }
  return kills;
};

const END = new Set(['ChannelReplySent', 'ChannelReplyUnknown', 'ChannelReplyFailed']);

const byNumber = (numbers: readonly number[]): Map<number, number> => {
  const counts = new Map<number, number>();
  for (const n of numbers) counts.set(n, (counts.get(n) ?? 0) + 1);
  return counts;
};
/** Returns how often each answer was seen. */
const answersSeen = (): Map<number, number> =>
  byNumber(
    platform
      .bodies<{ text: string }>(/^\/messages$/)
      .map(({ text }) => Number(/number (\d+);/.exec(text)?.[1])),
  );

describe(`${DELIVERIES} deliveries with repeats, in another order, under kills of every service`, () => {
  it('are each answered once, but for those that a sandbox was sending when it was killed', async () => {
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
    const seen = answersSeen();
    const dead = ends.filter(({ type }) => type !== 'ChannelReplySent');
    const turns = (await readEvents(stack, { category: 'session' })).filter(
      ({ type }) => type === 'TurnRequested',
    );
    const unseen = numbers.filter((n) => !seen.has(n));
    process.stdout.write(
      `${kills.length} kills, ${seen.size} answers seen, ${dead.length} unknown; unseen: ${unseen.join(' ')}\n`,
    );
    expect(kills.length).toBeGreaterThan(DELIVERIES / 250);
    expect([...seen.values()].filter((count) => count > 1)).toEqual([]);
    expect(turns).toHaveLength(DELIVERIES);
    // A process that is killed between its request and the answer cannot tell whether it arrived.
    expect(dead.filter(({ type }) => type === 'ChannelReplyFailed')).toEqual([]);
    expect(dead.length).toBeLessThanOrEqual(WORKERS * kills.filter((name) => name === 'sandbox').length);
    expect(seen.size).toBeGreaterThanOrEqual(DELIVERIES - dead.length);
    // Each of them is a dead letter, and its replay is the answer.
    for (const { data } of dead)
      await fetch(`${stack.gatewayUrl}/api/v1/deliveries/${String(data['messageId'])}/replay`, {
        method: 'POST',
      });
    await waitForValue('the replayed answers', () =>
      Promise.resolve(answersSeen().size === DELIVERIES || undefined),
    );
  });
});
