import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { createPool } from '@antiphon/database';
import { createPostgresEventStore } from '@antiphon/event-store';
import { checkFigure, growLog, measureContention } from '@antiphon/testing/load';
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
  world = await startDashboardWorld({ settings: MAIN, model: () => ({ text: ['well'] }) });
  chat = await createLongChat();
  await waitForValue('the projections', async () => {
    const { projections } = (await (await fetch(`${world.stack.gatewayUrl}/api/v1/projections`)).json()) as {
      projections: { lag: number }[];
    };
    return projections.every(({ lag }) => lag === 0) ? true : undefined;
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
