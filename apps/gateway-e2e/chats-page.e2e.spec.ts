import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import type { MockScript } from '@antiphon/testing/providers';
import { until } from '@antiphon/testing/waits';
import type { Page } from 'playwright-core';
import { findViolations, readApi, startDashboardWorld, type DashboardWorld } from './dashboard-world.js';
import { readEvents, type LoggedEvent } from './stack-under-test.js';

jest.setTimeout(120_000);

const { promise: released, resolve: release } = Promise.withResolvers<void>();

/** Holds an answer after its first words when it is asked to, and repeats the message otherwise. */
const model: MockScript = ({ user }) =>
  user.includes('hold')
    ? {
        reply: { text: ['These are partial words. ', 'never'] },
        before: (piece) => (piece.includes('never') ? released : undefined),
      }
    : { text: ['You said: ', user.slice(-40)] };

let world: DashboardWorld;
let page: Page;

beforeAll(async () => {
  world = await startDashboardWorld({ model });
  page = world.page;
});
afterAll(async () => {
  release();
  await world?.stop();
});

const field = () => page.getByRole('textbox', { name: 'Message' });
const button = (name: string) => page.getByRole('button', { name, exact: true });
const said = (text: string) => page.getByRole('feed').getByText(text, { exact: true });
const send = async (text: string): Promise<void> => {
  await field().fill(text);
  await page.keyboard.press('Enter');
};
const queued = () => page.locator('[data-queued]');

/** Keeps a picture of the page, for a person to look at. */
const picture = async (name: string): Promise<void> => {
  const folder = process.env['ANTIPHON_PICTURES'];
  if (folder === undefined) return;
  const { width, height } = page.viewportSize() ?? { width: 0, height: 0 };
  for (const colorScheme of ['light', 'dark'] as const)
    for (const [wide, high] of [
      [1_360, 900],
      [390, 844],
    ] as const) {
      await page.emulateMedia({ colorScheme });
      await page.setViewportSize({ width: wide, height: high });
      await page.screenshot({ path: `${folder}/${name}-${wide}-${colorScheme}.png` });
    }
  await page.emulateMedia({ colorScheme: null });
  await page.setViewportSize({ width, height });
};

/** Begins a chat, and waits until it has an address. Returns the id of the chat. */
const beginChat = async (text: string): Promise<string> => {
  await page.goto('/chats/new');
  await send(text);
  await page.waitForURL(/\/chats\/[0-9a-f-]{36}$/);
  return page.url().slice(-36);
};

interface Listed {
  readonly id: string;
  readonly name: string;
  readonly sessionId: string;
}
const chatOf = async (id: string): Promise<Listed> => {
  const { chats } = await readApi<{ chats: Listed[] }>(world, '/api/v1/workspaces/default/chats?limit=200');
  const found = chats.find((chat) => chat.id === id);
  if (!found) throw new Error(`there is no chat ${id}`);
  return found;
};
const eventsOf = async (chat: string): Promise<LoggedEvent[]> =>
  readEvents(world.stack, { stream: `session-${(await chatOf(chat)).sessionId}` });
const storedDrafts = (): Promise<string[]> =>
  page.evaluate(`Object.keys(localStorage).filter((key) => key.startsWith('antiphon.chat.'))`);

describe('a chat in Chromium', () => {
  it('begins with the key c, has the name of its first message, and is listed', async () => {
    await page.goto('/');
    await page.getByRole('heading', { name: 'Latest events' }).waitFor();
    await page.keyboard.press('c');
    await field().waitFor();
    expect(await field().inputValue()).toBe('');
    await page.getByRole('combobox', { name: 'Role' }).selectOption('agent gpt');
    await send('Which tide is next?');
    await said('You said: Which tide is next?').waitFor();
    const id = page.url().slice(-36);
    expect(await chatOf(id)).toMatchObject({ name: 'Which tide is next?', agentId: 'gpt' });
    const row = page.getByRole('navigation', { name: 'Chats' }).getByRole('link');
    expect(await row.first().getAttribute('aria-current')).toBe('page');
    expect(await row.first().innerText()).toContain('Which tide is next?');
    expect(await findViolations(page)).toEqual([]);
  });

  it('queues messages, edits one, removes one, and stops the running one', async () => {
    const chat = await beginChat('hold on');
    await said('These are partial words.').waitFor();
    for (const text of ['second', 'third', 'fourth']) await send(text);
    await until(async () => (await queued().count()) === 3);
    await queued().filter({ hasText: 'third' }).getByRole('button', { name: 'Edit' }).click();
    await until(async () => (await field().inputValue()) === 'third');
    await send('third, edited');
    await queued().filter({ hasText: 'edited' }).waitFor();
    await queued().filter({ hasText: 'fourth' }).getByRole('button', { name: 'Remove' }).click();
    await until(async () => (await queued().count()) === 2);
    await picture('queue');
    await button('Stop').click();
    await said('You said: third, edited').waitFor();
    expect(await said('These are partial words.').isVisible()).toBe(true);
    await until(async () => (await eventsOf(chat)).at(-1)?.type === 'TurnCompleted');
    const events = await eventsOf(chat);
    const contentOf = new Map<unknown, unknown>();
    for (const { type, data } of events)
      if (type === 'TurnRequested') contentOf.set(data['turnId'], data['content']);
    expect([...contentOf.values()]).toEqual(['hold on', 'second', 'third', 'fourth', 'third, edited']);
    const endsOf = (type: string) =>
      events.filter((event) => event.type === type).map(({ data }) => contentOf.get(data['turnId']));
    expect(endsOf('TurnCancelled').toSorted()).toEqual(['fourth', 'hold on', 'third']);
    expect(endsOf('TurnCompleted')).toEqual(['second', 'third, edited']);
    const aborted = events.find(({ type }) => type === 'ModelCallAborted');
    expect(aborted?.data).toMatchObject({ reason: 'cancelled', text: 'These are partial words. ' });
  });

  it('keeps a draft until it is sent: when the page is left, reloaded, and loses its gateway', async () => {
    await beginChat('hello');
    await said('You said: hello').waitFor();
    await field().fill('not finished');
    await page.getByRole('link', { name: 'Agents', exact: true }).click();
    await page.getByRole('heading', { name: 'Agents', level: 1 }).waitFor();
    await page.goBack();
    expect(await field().inputValue()).toBe('not finished');
    await page.reload();
    expect(await field().inputValue()).toBe('not finished');
    const pid = world.stack.stackJson().services['gateway']?.[0]?.pid ?? 0;
    process.kill(pid, 'SIGKILL');
    await page.getByText('Connection lost').waitFor();
    expect(await field().inputValue()).toBe('not finished');
    await send('sent while the gateway is gone');
    await page.getByText('not sent yet').waitFor();
    expect(await storedDrafts()).toHaveLength(1);
    await field().fill('another one');
    await said('You said: sent while the gateway is gone').waitFor({ timeout: 30_000 });
    const turns = (await eventsOf(page.url().slice(-36))).filter(({ type }) => type === 'TurnRequested');
    expect(turns.map(({ data }) => data['content'])).toEqual(['hello', 'sent while the gateway is gone']);
    await page.reload();
    expect(await field().inputValue()).toBe('another one');
    await page.keyboard.press('Enter');
    expect(await storedDrafts().then((keys) => keys.filter((key) => key.includes('draft')))).toEqual([]);
    await said('You said: another one').waitFor();
    expect(await field().inputValue()).toBe('');
  });

  it('drops the draft at a sign-out', async () => {
    const key = readFileSync(world.stack.stackJson().adminKeyFile, 'utf8').trim();
    const init = { method: 'POST', headers: { 'content-type': 'application/json', 'x-antiphon-csrf': '1' } };
    await page.evaluate(
      `fetch('/api/v1/dashboard/session', ${JSON.stringify({ ...init, body: JSON.stringify({ key }) })})`,
    );
    await page.goto('/chats/new');
    await field().fill('for my eyes only');
    expect((await storedDrafts()).filter((name) => name.endsWith(' new'))).toHaveLength(1);
    await page.goto('/settings');
    await button('Sign out').click();
    await until(async () => (await storedDrafts()).length === 0);
  });

  it('runs and fetches nothing of others, and logs no error', () => {
    expect(world.leaks).toEqual([]);
  });
});
