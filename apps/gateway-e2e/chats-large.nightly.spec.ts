import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { createPool } from '@antiphon/database';
import { createPostgresEventStore } from '@antiphon/event-store';
import { checkFigure, growLog, measureContention, percentile, report } from '@antiphon/testing/load';
import type { MockScript } from '@antiphon/testing/providers';
import { letTimePass } from '@antiphon/testing/waits';
import { startDashboardWorld, type DashboardWorld } from './dashboard-world.js';
import { waitForValue } from './stack-under-test.js';

jest.setTimeout(240_000);

const TURNS = 5_000;
/** A slow machine may raise a bound of time by at most this factor. */
const CAP = 3;
const ROUNDS = 5;

const MAIN = `
[[agents]]
id = "main"
workspace = "*"
provider = "anthropic"
model = "claude-sonnet-4"
`;

const TOKENS = Number(process.env['ANTIPHON_DASHBOARD_TOKENS'] ?? 20_000);
/** Streams 200 tokens a second when it is asked to. */
const model: MockScript = ({ user }) => {
  if (!user.includes('stream')) return { text: ['well'] };
  let startedAt = 0;
  return {
    reply: {
      text: Array.from({ length: TOKENS }, (_, nth) => `word${nth}${nth % 60 === 59 ? '\n\n' : ' '}`),
    },
    before: async (_, nth) => {
      if (nth === 0) startedAt = performance.now();
      const wait = startedAt + nth * 5 - performance.now();
      if (wait > 0) await letTimePass(wait);
    },
  };
};

/** Keeps the durations of tasks over 50 ms, and the time from each key to its paint. */
const WATCH = `window.tasks = []; window.keys = [];
  new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) window.tasks.push(Math.round(duration));
  }).observe({ type: 'longtask' });
  addEventListener('keydown', () => {
    const from = performance.now();
    requestAnimationFrame(() => setTimeout(() => window.keys.push(performance.now() - from)));
  }, true)`;

let world: DashboardWorld;
let chat: string;
let slowdown = 1;

/** Creates a chat whose session has many turns. */
const createLongChat = async (): Promise<string> => {
  const options = { url: world.stack.databaseUrl, role: 'antiphon_agent', applicationName: 'spec', max: 4 };
  const pool = createPool(options);
  const log = createPostgresEventStore(pool);
  const sessionId = await growLog(log, { turns: TURNS, events: TURNS });
  const chatId = randomUUID();
  const data = {
    ...{ chatId, name: 'a long chat', path: 'a long chat.chat', agentId: 'main', role: null, sessionId },
    ...{ createdBy: 'spec', createdAt: '2026-11-27T10:00:00.000Z' },
  };
  const created = { eventId: randomUUID(), type: 'ChatCreated', schemaVersion: 1, data };
  const events = [{ ...created, metadata: { correlationId: 'spec', service: 'agent' } }];
  await log.append({
    workspace: 'default',
    streams: [{ streamId: `chat-${chatId}`, expectedVersion: 0, events }],
  });
  await log.close();
  await pool.end();
  return chatId;
};

beforeAll(async () => {
  world = await startDashboardWorld({ settings: MAIN, model });
  chat = await createLongChat();
  await waitForValue('the projections', async () => {
    const { projections } = (await (await fetch(`${world.stack.gatewayUrl}/api/v1/projections`)).json()) as {
      projections?: { lag: number }[];
    };
    return projections?.every(({ lag }) => lag === 0) ? true : undefined;
  });
  slowdown = Math.min(CAP, await measureContention());
}, 240_000);
afterAll(() => world?.stop());

/** Returns the shortest of some times, ms. */
const shortest = async (act: () => Promise<void>): Promise<number> => {
  const times: number[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const startedAt = performance.now();
    await act();
    times.push(performance.now() - startedAt);
  }
  return Math.min(...times);
};

describe('a chat of 10,000 messages', () => {
  it('opens at its end within a second, and has at most 80 turns in the page', async () => {
    const { page } = world;
    const last = page.getByText(`The sum of turn ${TURNS - 1} is 42.`).first();
    const ms = await shortest(async () => {
      await page.goto(`/chats/${chat}`);
      await last.waitFor();
    });
    checkFigure({ what: 'a chat of 10,000 messages opens', value: ms, unit: 'ms', atMost: 1_000 * slowdown });
    expect(await page.locator('article').count()).toBeLessThanOrEqual(80);
    const isAtEnd = `innerHeight + scrollY >= document.documentElement.scrollHeight - 200`;
    expect(await page.evaluate(isAtEnd)).toBe(true);
  });

  it('finds a text of its first turns, which the page does not have, and shows it', async () => {
    const { page } = world;
    await page.goto(`/chats/${chat}`);
    await page
      .getByText(`The sum of turn ${TURNS - 1} is 42.`)
      .first()
      .waitFor();
    const wanted = page.getByText('The sum of turn 7 is 42.').first();
    expect(await wanted.count()).toBe(0);
    await page.keyboard.press('Control+f');
    await page.getByRole('searchbox', { name: 'Find in the chat' }).fill('sum of turn 7 is');
    await page.getByText('1 of 1', { exact: true }).waitFor();
    await wanted.waitFor();
    await page.getByRole('searchbox', { name: 'Find in the chat' }).fill('the sum of');
    await page.getByText(`1 of ${TURNS}`, { exact: true }).waitFor();
    // The last of the 1,000 matches that are read is in no part of the page.
    const end = page.getByText('The sum of turn 999 is 42.').first();
    expect(await end.count()).toBe(0);
    const startedAt = performance.now();
    await page.getByRole('button', { name: 'Previous match' }).click();
    await end.waitFor();
    checkFigure({
      ...{ what: 'a jump in a chat of 10,000 messages', value: performance.now() - startedAt },
      ...{ unit: 'ms', atMost: 300 * slowdown },
    });
    expect(await page.locator('article').count()).toBeLessThanOrEqual(80);
    await page.goto(`/chats/${chat}`);
    await page
      .getByText(`The sum of turn ${TURNS - 1} is 42.`)
      .first()
      .waitFor();
  });

  it('shows earlier messages within 300 ms, and still at most 80 turns', async () => {
    const { page } = world;
    const earlier = page.getByRole('button', { name: 'Show earlier messages' });
    const shown = page.locator('article').first();
    for (let step = 0; step < 3; step++) {
      const before = await shown.getAttribute('data-turn');
      const startedAt = performance.now();
      await earlier.click();
      await waitForValue('other turns', async () =>
        (await shown.getAttribute('data-turn')) === before ? undefined : true,
      );
      const ms = performance.now() - startedAt;
      checkFigure({
        what: `earlier messages, step ${step + 1}`,
        value: ms,
        unit: 'ms',
        atMost: 300 * slowdown,
      });
    }
    expect(await page.locator('article').count()).toBeLessThanOrEqual(80);
  });
});

describe('an answer of 20,000 tokens in a chat', () => {
  it('streams without long tasks, and a key in the composer is painted within 50 ms', async () => {
    const { page } = world;
    await page.goto('/chats/new');
    const field = page.getByRole('textbox', { name: 'Message' });
    await field.fill('stream it');
    await page.keyboard.press('Enter');
    await page.getByRole('feed').getByText('word0 ').first().waitFor();
    await page.evaluate(WATCH);
    const busy = page.locator('article[aria-busy=true]');
    while ((await busy.count()) > 0) {
      await field.press('a');
      await letTimePass(200);
    }
    await page
      .getByRole('feed')
      .getByText(`word${TOKENS - 1}`)
      .first()
      .waitFor();
    const [tasks, keys] = (await page.evaluate('[window.tasks, window.keys]')) as [number[], number[]];
    expect(keys.length).toBeGreaterThan(TOKENS / 400);
    report(`long tasks of an answer of ${TOKENS} tokens in a chat, ms: ${tasks.join(' ') || 'none'}`);
    checkFigure({
      ...{ what: 'a key in the composer of a chat to paint while it streams (p95)', unit: 'ms' },
      ...{ value: percentile(keys, 0.95), atMost: 50 * slowdown },
    });
    checkFigure({
      ...{ what: `tasks over 50 ms while ${TOKENS} tokens stream in a chat`, unit: '', atMost: 3 },
      value: tasks.filter((task) => task > 50 * slowdown).length,
    });
    checkFigure({
      ...{ what: `the longest task while ${TOKENS} tokens stream in a chat`, unit: 'ms' },
      ...{ value: Math.max(0, ...tasks), atMost: 150 * slowdown },
    });
  });
});
