import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import type { Page } from 'playwright-core';
import { startDashboardWorld, type DashboardWorld } from './dashboard-world.js';
import { createApiCaller, readEvents, waitForValue } from './stack-under-test.js';

jest.setTimeout(120_000);

const TOKEN = 'the-token-of-two-tabs-has-over-32-characters';
const call = createApiCaller(() => world.stack.gatewayUrl);

let world: DashboardWorld;
beforeAll(async () => {
  world = await startDashboardWorld({ gateway: `token = "${TOKEN}"` });
});
afterAll(() => world?.stop());

/** Opens a browser that is signed in with a key of this name. */
const openAs = async (name: string): Promise<Page> => {
  const { body } = await call<{ token: string }>(TOKEN, 'POST', '/keys', { name, role: 'operator' });
  const page = await world.browser.newPage({ baseURL: world.stack.gatewayUrl });
  page.setDefaultTimeout(10_000);
  await page.goto('/');
  await page.getByLabel('API key').fill(body.token);
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor();
  return page;
};
const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true, disabled: false });
/** Starts a conversation that waits for an approval. Returns the path of its page. */
const ask = async (page: Page): Promise<string> => {
  await page.goto('/agents/gpt');
  await page.getByLabel('Message to Gpt').fill('please calculate it');
  await page.getByRole('button', { name: 'Start a conversation' }).click();
  await button(page, 'Approve').waitFor();
  return new URL(page.url()).pathname;
};
const readTypes = async (path: string) => {
  const stream = `session-${path.split('/').at(-1)}`;
  const events = await readEvents(world.stack, { stream }, { authorization: `Bearer ${TOKEN}` });
  return events.filter(({ type }) => /^(Approval|ToolCall|Turn)/.test(type));
};
const waitForEnd = (path: string) =>
  waitForValue('the end of the turn', async () => {
    const events = await readTypes(path);
    return events.some(({ type }) => type === 'TurnCompleted') ? events.map(({ type }) => type) : undefined;
  });
const ONCE = [
  ...['TurnRequested', 'ApprovalRequested', 'ApprovalGranted'],
  ...['ToolCallRequested', 'ToolCallCompleted', 'TurnCompleted'],
];
const decision = (page: Page) => page.locator('[data-call]').filter({ hasText: 'calculator' });

describe('an approval that is open in two browsers', () => {
  it('shows in one who has answered in the other, and offers no answer any more', async () => {
    const [ada, bob] = [await openAs('Ada'), await openAs('Bob')];
    const path = await ask(ada);
    await bob.goto(path);
    await button(bob, 'Deny').waitFor();
    await bob.goto('/approvals');
    await button(bob, 'Deny').waitFor();
    const other = await openAs('Carol');
    await other.goto(path);
    await button(other, 'Approve').waitFor();
    await button(ada, 'Approve').click();
    await decision(other).getByText('granted', { exact: true }).waitFor();
    await decision(other).getByText('by Ada').first().waitFor();
    await button(bob, 'Deny').waitFor({ state: 'detached' });
    expect(await button(other, 'Approve').count()).toBe(0);
    expect(await waitForEnd(path)).toEqual(ONCE);
    for (const page of [ada, bob, other]) await page.close();
  });

  it('refuses the answer of one that does not know yet, and says who was first', async () => {
    const [ada, bob] = [await openAs('Ada'), await openAs('Bob')];
    const path = await ask(ada);
    // Only the events and frames are late: replies and heartbeats arrive.
    const late: (() => void)[] = [];
    let isLate = false;
    await bob.routeWebSocket(/\/ws/, (socket) => {
      const server = socket.connectToServer();
      socket.onMessage((message) => server.send(message));
      server.onMessage((message) => {
        if (isLate && /"(cursor|offset)":/.test(String(message))) late.push(() => socket.send(message));
        else socket.send(message);
      });
    });
    await bob.goto(path);
    await button(bob, 'Deny').waitFor();
    await bob.getByText('Connected', { exact: true }).waitFor();
    isLate = true;
    await button(ada, 'Approve').click();
    expect(await waitForEnd(path)).toEqual(ONCE);
    await button(bob, 'Deny').click();
    await bob
      .getByRole('alert')
      .getByText(/this was granted by/)
      .waitFor();
    isLate = false;
    for (const deliver of late.splice(0)) deliver();
    await decision(bob).getByText('by Ada').first().waitFor();
    expect(await button(bob, 'Deny').count()).toBe(0);
    expect((await readTypes(path)).map(({ type }) => type)).toEqual(ONCE);
    for (const page of [ada, bob]) await page.close();
  });
});

describe('a page of the past', () => {
  it('only counts newer events, and back in the present equals a fresh load', async () => {
    const ada = await openAs('Ada');
    const chats = '/workspaces/default/chats';
    const made = await call<{ id: string; sessionId: string }>(TOKEN, 'POST', chats, {
      name: 'c',
      agent: 'claude',
    });
    const { id, sessionId } = made.body;
    const path = `/sessions/${sessionId}`;
    const say = async (content: string, count: number) => {
      await call(TOKEN, 'POST', `${chats}/${id}`, { command: 'message', content });
      return waitForValue('the end of the turn', async () => {
        const ends = (await readTypes(path)).filter(({ type }) => type === 'TurnCompleted');
        return ends.length === count ? ends.at(-1) : undefined;
      });
    };
    const first = await say('the first', 1);
    const readText = async (): Promise<string> =>
      (await ada.locator('main').innerText()).replaceAll(/\bnow\b|\b\d+ (?:s|min) ago\b/g, 'AGE');
    await ada.goto(`${path}?at=${first.position}`);
    await ada.locator('[data-turn]').getByText('the first').waitFor();
    await ada.getByText('Connected', { exact: true }).waitFor();
    const before = await readText();
    const last = await say('the second', 2);
    await waitForValue('the counter', async () => {
      const text = await ada.getByRole('group', { name: 'Position of the log' }).innerText();
      const [, count = '0'] = /([\d,]+) newer event/.exec(text) ?? [];
      return Number(count.replaceAll(',', '')) >= last.position - first.position || undefined;
    });
    expect(await readText()).toBe(before);
    await ada.getByRole('button', { name: 'Back to live', exact: true }).click();
    await ada.locator('[data-turn]').getByText('the second').waitFor();
    const live = await readText();
    await ada.reload();
    await ada.locator('[data-turn]').getByText('the second').waitFor();
    expect(await readText()).toBe(live);
    await ada.close();
  });
});
