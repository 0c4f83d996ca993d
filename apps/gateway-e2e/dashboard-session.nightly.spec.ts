import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { createPool } from '@antiphon/database';
import type { BrowserContext, Page } from 'playwright-core';
import { findViolations, startDashboardWorld, type DashboardWorld } from './dashboard-world.js';
import { createApiCaller, readEvents, waitForValue } from './stack-under-test.js';

jest.setTimeout(120_000);

const TOKEN = 'the-token-of-the-sessions-has-over-32-characters';
const HOUR_MS = 3_600_000;
const call = createApiCaller(() => world.stack.gatewayUrl);

let world: DashboardWorld;
let pool: ReturnType<typeof createPool>;
let key: string;
let context: BrowserContext;
let page: Page;
let session: string;
const createKey = async (body: object): Promise<string> => {
  const made = await call<{ token: string }>(TOKEN, 'POST', '/keys', { name: 'spec', ...body });
  return made.body.token;
};

beforeAll(async () => {
  const settings = { model: () => ({ text: ['well'] }), settings: '' };
  world = await startDashboardWorld({ ...settings, gateway: `token = "${TOKEN}"` });
  pool = createPool({ url: world.stack.databaseUrl, applicationName: 'spec' });
  key = await createKey({ role: 'operator' });
  context = await world.browser.newContext({ baseURL: world.stack.gatewayUrl });
  context.setDefaultTimeout(10_000);
  page = await context.newPage();
  await page.goto('/');
  await signIn(page, key);
  await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor();
  await page.goto('/agents/gpt');
  await page.getByLabel('Message to Gpt').fill('hello');
  await page.getByRole('button', { name: 'Start a conversation' }).click();
  await page.locator('[data-turn]').getByText('well').waitFor();
  session = page.url();
});
afterAll(async () => {
  await pool?.end();
  await world?.stop();
});

const signIn = async (tab: Page, secret: string): Promise<void> => {
  await tab.getByLabel('API key').fill(secret);
  await tab.keyboard.press('Enter');
};
const warning = (tab: Page) => tab.getByRole('alert').filter({ hasText: 'You are signed in until' });
const dialog = (tab: Page) => tab.getByRole('dialog', { name: 'Your session has ended' });
const button = (tab: Page, name: string) => tab.getByRole('button', { name, exact: true });
const draft = (tab: Page) => tab.getByLabel('Message', { exact: true });
const readEnd = async (): Promise<number> => {
  const me = await context.request.get('/api/v1/me');
  return me.ok() ? Date.parse(((await me.json()) as { expiresAt: string }).expiresAt) - Date.now() : 0;
};
/** Sets the end of the sessions, which the gateway then knows within a second. */
const endSessionsIn = async (ms: number): Promise<void> => {
  await pool.query(
    `update api_keys set expires_at = now() + $1 * interval '1 ms' where name like 'dashboard-session/%' and status = 'active'`,
    [ms],
  );
  await waitForValue('the other end', async () => ((await readEnd()) <= Math.max(ms, 0) ? true : undefined));
};
const turnsOf = async (content: string): Promise<number> => {
  const authorization = { authorization: `Bearer ${TOKEN}` };
  const events = await readEvents(world.stack, { type: 'TurnRequested' }, authorization);
  return events.filter(({ data }) => data['content'] === content).length;
};
const sendDraft = async (tab: Page, content: string): Promise<void> => {
  expect(await draft(tab).inputValue()).toBe(content);
  await tab.getByText('Connected', { exact: true }).waitFor();
  await draft(tab).press('Enter');
  await waitForValue('the turn', async () => ((await turnsOf(content)) > 0 ? true : undefined));
  expect(await turnsOf(content)).toBe(1);
};

describe('a session of the dashboard that ends soon', () => {
  it('is no matter of a new one, and warns five minutes before its end', async () => {
    await page.goto('/settings');
    await button(page, 'Sign out').waitFor();
    expect(await readEnd()).toBeGreaterThan(11 * HOUR_MS);
    expect(await warning(page).count()).toBe(0);
    await endSessionsIn(5 * 60_000 + 4_000);
    await page.goto(session);
    await draft(page).fill('typed before');
    expect(await warning(page).count()).toBe(0);
    await warning(page).waitFor();
    expect(await findViolations(page)).toEqual([]);
  });

  it('is extended by one key press, in all tabs, and nothing typed is lost', async () => {
    const tab = await context.newPage();
    await tab.goto(session);
    await draft(tab).fill('typed in another tab');
    await warning(tab).waitFor();
    await button(page, 'Stay signed in').press('Enter');
    await warning(page).waitFor({ state: 'detached' });
    await warning(tab).waitFor({ state: 'detached' });
    expect(await readEnd()).toBeGreaterThan(11 * HOUR_MS);
    expect(await page.evaluate('document.activeElement.id')).toBe('main');
    await sendDraft(page, 'typed before');
    await sendDraft(tab, 'typed in another tab');
    for (const each of [page, tab]) expect(await dialog(each).count()).toBe(0);
    await tab.close();
  });
});

describe('a session of the dashboard that has ended', () => {
  it('asks for a key over the page, which is covered, and nothing typed is lost', async () => {
    await draft(page).fill('typed before the end');
    await endSessionsIn(-1);
    await dialog(page).waitFor();
    await page.keyboard.press('Escape');
    await page.keyboard.press('Escape');
    await dialog(page).waitFor();
    expect(await findViolations(page)).toEqual([]);
    const middle = `document.elementFromPoint(5, 5).closest('dialog') !== null`;
    expect(await page.evaluate(middle)).toBe(true);
    await signIn(page, `ak_${'a'.repeat(16)}_${'b'.repeat(43)}`);
    await page.getByText('The gateway does not accept this key.').waitFor();
    await signIn(page, key);
    await dialog(page).waitFor({ state: 'detached' });
    await sendDraft(page, 'typed before the end');
    await page.locator('[data-turn]').nth(3).getByText('well').waitFor();
  });

  it('gives a caller with fewer rights a new page', async () => {
    await draft(page).fill('of the operator');
    await endSessionsIn(-1);
    await dialog(page).waitFor();
    await signIn(page, await createKey({ role: 'viewer' }));
    await dialog(page).waitFor({ state: 'detached' });
    await page.locator('[data-turn]').first().waitFor();
    expect(await draft(page).inputValue()).toBe('');
    expect(await draft(page).isDisabled()).toBe(true);
  });
});

describe('a session that a person ended', () => {
  it('shows nothing by Back after a sign-out, and its cookie is gone', async () => {
    const own = await world.browser.newContext({ baseURL: world.stack.gatewayUrl });
    const tab = await own.newPage();
    await tab.goto(session);
    await signIn(tab, key);
    await tab.locator('[data-turn]').first().waitFor();
    expect(await own.cookies()).toHaveLength(1);
    await tab.goto('/settings');
    await button(tab, 'Sign out').click();
    await tab.getByRole('heading', { name: 'Sign in to Antiphon' }).waitFor();
    expect(await own.cookies()).toEqual([]);
    await tab.goBack();
    await tab.getByRole('heading', { name: 'Sign in to Antiphon' }).waitFor();
    expect(await tab.locator('[data-turn]').count()).toBe(0);
    await own.close();
  });
});

describe('a session whose key ends soon', () => {
  it('cannot be extended beyond it, and continues with another key', async () => {
    const own = await world.browser.newContext({ baseURL: world.stack.gatewayUrl });
    const tab = await own.newPage();
    await tab.goto(session);
    const expiresAt = new Date(Date.now() + 200_000).toISOString();
    await signIn(tab, await createKey({ role: 'operator', expiresAt }));
    await warning(tab).waitFor();
    await draft(tab).fill('typed with the first key');
    await button(tab, 'Stay signed in').click();
    await tab.getByText('Its key ends then').waitFor();
    expect(await button(tab, 'Stay signed in').count()).toBe(0);
    await button(tab, 'Sign in again').click();
    await tab.getByRole('dialog', { name: 'Sign in again' }).waitFor();
    await tab.keyboard.press('Escape');
    await tab.getByRole('dialog').waitFor({ state: 'detached' });
    await button(tab, 'Sign in again').click();
    await signIn(tab, key);
    await warning(tab).waitFor({ state: 'detached' });
    await sendDraft(tab, 'typed with the first key');
    await own.close();
  });
});
