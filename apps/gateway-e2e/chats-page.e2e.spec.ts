import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { pngOf } from '@antiphon/testing/sample-files';
import { until } from '@antiphon/testing/waits';
import type { Page } from 'playwright-core';
import { createChatModel, MOST_BYTES, SETTINGS } from './chats-page-model.js';
import { createChatsOnPage } from './chats-on-page.js';
import { dropFiles, pasteFiles, pasteText } from './chat-browser.js';
import {
  findViolations,
  readApi,
  savePictures,
  startDashboardWorld,
  type DashboardWorld,
} from './dashboard-world.js';
import { describeChatBranches } from './describe-chat-branches.js';
import { describePhoneTabs } from './describe-phone-tabs.js';

jest.setTimeout(120_000);

const { promise: released, resolve: release } = Promise.withResolvers<void>();

/** Sums the moves of the layout that no input explains. */
const OBSERVE_SHIFTS = `window.shifts = 0;
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) if (!entry.hadRecentInput) window.shifts += entry.value;
  }).observe({ type: 'layout-shift' });`;

interface FileInContext {
  readonly path: string;
  readonly tokens: number;
  readonly isCut: boolean;
  readonly wholeTokens?: number;
}

let world: DashboardWorld;
let page: Page;

beforeAll(async () => {
  world = await startDashboardWorld({ model: createChatModel(released), settings: SETTINGS });
  page = world.page;
});
afterAll(async () => {
  release();
  await world?.stop();
});

const { field, button, said, send, beginChat, chatOf, eventsOf } = createChatsOnPage(() => world);
const queued = () => page.locator('[data-queued]');
const storedDrafts = (): Promise<string[]> =>
  page.evaluate(`Object.keys(localStorage).filter((key) => key.startsWith('antiphon.chat.'))`);

describe('a chat in Chromium', () => {
  // @shows C15
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

  // @shows C16
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
    await savePictures(page, 'queue');
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
});

describeChatBranches(() => world);

describe('the list of chats', () => {
  const list = () => page.getByRole('navigation', { name: 'Chats' });
  const rows = () => list().getByRole('listitem');

  it('finds words, roles and states of all chats, and renames and deletes in place', async () => {
    const kept = await beginChat('the harbour opens');
    await said('You said: the harbour opens').waitFor();
    await page.goto('/chats/new?agent=gpt');
    await send('the harbour closes');
    await said('You said: the harbour closes').waitFor();
    await list().getByRole('searchbox').fill('harb');
    await until(async () => (await rows().count()) === 2);
    await list().getByRole('combobox', { name: 'Chats with' }).selectOption('gpt');
    await until(async () => (await rows().count()) === 1);
    await list().getByRole('combobox', { name: 'Chats that are' }).selectOption('waiting');
    await list().getByText('No chat matches.').waitFor();
    await savePictures(page, 'list');
    await list().getByRole('combobox', { name: 'Chats that are' }).selectOption('');
    await list().getByRole('combobox', { name: 'Chats with' }).selectOption('');
    await until(async () => (await rows().count()) === 2);
    await button('Actions of the harbour opens').click();
    await button('Rename').click();
    await page.getByRole('dialog').getByLabel('Name').fill('quay of the north');
    await page.getByRole('dialog').getByRole('button', { name: 'Rename' }).click();
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await list().getByRole('searchbox').fill('quay');
    await list().getByText('quay of the north').waitFor();
    expect((await chatOf(kept)).name).toBe('quay of the north');
    expect(await findViolations(page)).toEqual([]);
    await button('Actions of quay of the north').click();
    await button('Delete').click();
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
    await list().getByText('No chat matches.').waitFor();
    await expect(chatOf(kept)).rejects.toThrow('there is no chat');
    // Another chat is open, and stays.
    expect(await said('You said: the harbour closes').isVisible()).toBe(true);
  });
});

describePhoneTabs(() => world);

describe('files of a message', () => {
  const chip = (name: string) =>
    page.getByRole('list', { name: 'Files of the message' }).getByRole('listitem').filter({ hasText: name });

  // @shows H18
  it('are attached by drop, paste and a long text, and their chips say what became of them', async () => {
    await page.goto('/chats/new');
    await field().waitFor();
    expect(
      await dropFiles(page, [
        { name: 'notes.md', text: 'one\ntwo' },
        { name: 'empty.txt', text: '' },
      ]),
    ).toBe(false);
    await chip('notes.md').getByText('7 B · attached').waitFor();
    await chip('empty.txt').getByText('0 B · attached · it is empty').waitFor();
    await pasteFiles(page, [
      { name: 'pixel.png', base64: pngOf(8, 8).toString('base64'), type: 'image/png' },
    ]);
    await chip('pixel.png')
      .getByText(/attached$/)
      .waitFor();
    expect(await chip('pixel.png').locator('img').count()).toBe(1);
    await pasteText(page, 'x'.repeat(5_000));
    await chip('-pasted.txt').getByText('attached').waitFor();
    await chip('-pasted.txt').getByRole('button', { name: 'Undo' }).click();
    expect(await field().inputValue()).toBe('x'.repeat(5_000));
    await field().fill('');
    await dropFiles(page, [{ name: 'large.txt', text: 'y'.repeat(300_000) }]);
    await chip('large.txt').getByText('failed').waitFor();
    expect(await chip('large.txt').innerText()).toContain('200000');
    expect(await button('Send').isDisabled()).toBe(true);
    await button('Remove large.txt').click();
    // The connection is lost during the upload.
    const { promise: isLost, resolve: lose } = Promise.withResolvers<void>();
    const late = /late\.txt/;
    await page.route(late, (route) => isLost.then(() => route.abort('connectionreset')));
    await dropFiles(page, [{ name: 'late.txt', text: 'late' }]);
    await chip('late.txt')
      .getByText(/uploading \d+ %/)
      .waitFor();
    await page.context().setOffline(true);
    lose();
    await chip('late.txt').getByText('failed: the connection was lost').waitFor();
    await page.unroute(late);
    await page.context().setOffline(false);
    await chip('late.txt').getByText('4 B · attached').waitFor();
    expect(new URL(page.url()).pathname).toBe('/chats/new');
    await savePictures(page, 'chips');
    expect(await findViolations(page)).toEqual([]);
    await send('read them');
    await said('I have read them.').waitFor();
    const sent = page.getByRole('list', { name: 'Attached files' });
    await sent.getByText(/^7 B · read whole · \d+ tokens$/).waitFor();
    await sent.getByText(/ · sent as image · \d+ tokens$/).waitFor();
    await button('Open the side panel').click();
    const panel = page.getByRole('complementary', { name: 'About this chat' });
    const detach = panel.getByRole('button', { name: /^Detach .*notes/ });
    await detach.click();
    await detach.waitFor({ state: 'detached' });
    expect(await panel.getByRole('button', { name: /^Detach / }).count()).toBe(3);
    expect(await findViolations(page)).toEqual([]);
    await savePictures(page, 'panel');
    await button('Close the side panel').first().click();
    const chat = await eventsOf(page.url().slice(-36));
    const detached = { type: 'ChatFileDetached', data: { path: expect.stringContaining('notes') } };
    expect(chat.at(-1)).toMatchObject(detached);
    expect(chat.slice(0, 6).map(({ type }) => type)).toEqual([
      ...['SessionStarted', 'ChatFileAttached', 'ChatFileAttached', 'ChatFileAttached', 'ChatFileAttached'],
      'TurnRequested',
    ]);
  });

  it('say how much of each the model has read, as its context does', async () => {
    const lines = (count: number): string =>
      Array.from({ length: count }, (_, n) => `line ${n + 1} of the log of the tides`).join('\n');
    const chat = await beginChat('hello');
    await said('You said: hello').waitFor();
    await dropFiles(page, [
      { name: 'long.md', text: lines(600) },
      { name: 'huge.md', text: lines(5_500) },
    ]);
    for (const name of ['long.md', 'huge.md'])
      await chip(name)
        .getByText(/attached$/)
        .waitFor();
    await send('read them');
    await said('I have read them.').waitFor();
    const { sessionId } = await chatOf(chat);
    const turnId = (await eventsOf(chat)).findLast(({ type }) => type === 'TurnRequested')?.data['turnId'];
    const { files } = await readApi<{ files: FileInContext[] }>(
      world,
      `/api/v1/sessions/${sessionId}/turns/${turnId}/context`,
    );
    const numberOf = (value = 0): string => value.toLocaleString('en-US');
    const [long, huge] = ['long.md', 'huge.md'].map((name) => files.find(({ path }) => path.endsWith(name)));
    expect([long?.isCut, huge?.isCut]).toEqual([false, true]);
    expect(long?.tokens).toBeGreaterThan(4_500);
    expect(huge?.wholeTokens).toBeGreaterThan(huge?.tokens ?? Infinity);
    const sent = page.getByRole('list', { name: 'Attached files' });
    await sent.getByText(` · read whole · ${numberOf(long?.tokens)} tokens`).waitFor();
    await sent
      .getByText(` · read ${numberOf(huge?.tokens)} of ${numberOf(huge?.wholeTokens)} tokens: `)
      .waitFor();
  });

  it('are refused by the quota of the workspace, which the chip names', async () => {
    await page.goto('/chats/new');
    await field().waitFor();
    const full = chip('full-4.txt');
    const texts = Array.from({ length: 5 }, (_, nth) => ({
      ...{ name: `full-${nth}.txt`, text: `${nth}`.repeat(190_000) },
    }));
    for (const file of texts) {
      await dropFiles(page, [file]);
      await chip(file.name)
        .getByText(/attached|failed/)
        .waitFor();
    }
    await full.getByText('failed').waitFor();
    expect(await full.innerText()).toContain(`${MOST_BYTES}`);
    expect(await button('Send').isDisabled()).toBe(true);
    const { entries } = await readApi<{ entries: { path: string }[] }>(
      world,
      '/api/v1/workspaces/default/files?path=uploads&limit=1000',
    );
    const stored = entries.filter(({ path }) => path.includes('full-')).map(({ path }) => path.at(-5));
    expect(stored).not.toContain('4');
    expect(stored.length).toBeGreaterThan(0);
    expect(new URL(page.url()).pathname).toBe('/chats/new');
    for (const { name } of texts)
      await page.getByRole('button', { name: new RegExp(`^Remove ${name}`) }).click();
  });

  it('are named after @, a command after / begins another chat, and Ctrl+F finds a text', async () => {
    await fetch(`${world.stack.gatewayUrl}/api/v1/workspaces/default/files/tables/tides.md`, {
      method: 'PUT',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ text: 'low tide at six' }),
    });
    await page.goto('/chats/new');
    await field().pressSequentially('see @tides');
    await page.getByRole('option', { name: 'tables/tides.md' }).waitFor();
    expect(await findViolations(page)).toEqual([]);
    await page.keyboard.press('Enter');
    expect(await field().inputValue()).toBe('see tables/tides.md');
    await chip('tides.md').getByText('15 B · attached').waitFor();
    await page.keyboard.press('Enter');
    await said('You said: see tables/tides.md').waitFor();
    const chat = page.url().slice(-36);
    await page.keyboard.press('Control+f');
    await page.getByRole('searchbox', { name: 'Find in the chat' }).fill('you said');
    await page.getByText('1 of 1', { exact: true }).waitFor();
    await field().fill('/new');
    await page.getByRole('option', { name: '/new' }).click();
    await page.waitForURL('**/chats/new');
    for (const path of ['/chats/new', `/chats/${chat}`])
      for (const type of ['fill', 'pressSequentially'] as const) {
        await page.goto(path);
        const chooser = page.waitForEvent('filechooser');
        await field()[type]('/attach');
        await page.keyboard.press('Enter');
        await (
          await chooser
        ).setFiles({ name: 'chosen.txt', mimeType: 'text/plain', buffer: Buffer.from('chosen') });
        await chip('chosen.txt').last().getByText('6 B · attached').waitFor();
      }
  });
});

describe('tool calls of an answer', () => {
  it('fold successful ones, keep a failure and an approval in view, and keep open what was opened', async () => {
    await page.goto('/chats/new?agent=gpt');
    await send('call forty tools');
    await button('Approve').waitFor();
    const group = page.locator('details').filter({ hasText: 'tool calls' }).first();
    await group.locator('summary').first().click();
    expect(
      await page.locator('article details[data-call]').filter({ hasText: 'no_such_tool' }).isVisible(),
    ).toBe(true);
    await savePictures(page, 'tools');
    await page.evaluate(OBSERVE_SHIFTS);
    // A card that has just moved takes no click, and the answer removes the card.
    await until(async () => {
      if (await said('All forty are done.').isVisible()) return true;
      await button('Approve')
        .click({ timeout: 500 })
        .catch(() => undefined);
      return false;
    });
    expect(await group.getAttribute('open')).not.toBeNull();
    expect(await page.evaluate('window.shifts')).toBeLessThanOrEqual(0.1);
    expect(await findViolations(page)).toEqual([]);
  });
});

describe('the end of a session', () => {
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
    await until(async () => (await storedDrafts().catch(() => ['not read'])).length === 0);
  });

  it('runs and fetches nothing of others, and logs no error', () => {
    expect(world.leaks).toEqual([]);
  });
});
