import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { createPool } from '@antiphon/database';
import type { BrowserContext, Page } from 'playwright-core';
import { findViolations, startDashboardWorld, type DashboardWorld } from './dashboard-world.js';
import { createApiCaller } from './stack-under-test.js';

jest.setTimeout(120_000);

const START = fileURLToPath(new URL('../../tools/stack/dist/main.js', import.meta.url));
const run = promisify(execFile);
const call = createApiCaller(() => world.stack.gatewayUrl);

let world: DashboardWorld;
let adminKey: string;
const codes: string[] = [];

/** Starts the stack that runs already, as `npm start` does, and returns the link that it prints. */
const printLink = async (): Promise<string> => {
  const env = { ...process.env, NODE_OPTIONS: '', ANTIPHON_HOME: world.stack.home };
  const { stdout } = await run(process.execPath, [START, 'up'], { env, cwd: world.stack.home });
  expect(stdout).toContain('this stack runs already');
  const [, link = '', code = ''] =
    /^sign in once, within 5 minutes: (\S+\/#sign-in=(\S+))$/m.exec(stdout) ?? [];
  expect(code).toMatch(/^ak_/);
  codes.push(code);
  return link;
};

beforeAll(async () => {
  const settings = { model: () => ({ text: ['well'] }), settings: '' };
  const gateway = 'token = "the-token-of-the-links-has-over-32-characters"';
  world = await startDashboardWorld({ ...settings, gateway });
  adminKey = readFileSync(world.stack.stackJson().adminKeyFile, 'utf8').trim();
});
afterAll(() => world?.stop());

interface Tab {
  readonly context: BrowserContext;
  readonly page: Page;
  /** Addresses, headers and bodies of its requests, without the one that exchanges the code. */
  readonly sent: string[];
}

/** Opens a browser that was never here. */
const openTab = async (): Promise<Tab> => {
  const context = await world.browser.newContext({ baseURL: world.stack.gatewayUrl });
  context.setDefaultTimeout(10_000);
  const page = await context.newPage();
  const sent: string[] = [];
  page.on('request', (request) => {
    const isExchange = request.method() === 'POST' && request.url().endsWith('/api/v1/dashboard/session');
    const body = isExchange ? '' : (request.postData() ?? '');
    sent.push(`${request.url()} ${JSON.stringify(request.headers())} ${body}`);
  });
  return { context, page, sent };
};
const overview = (page: Page) => page.getByRole('heading', { level: 1, name: 'Overview' });
const form = (page: Page) => page.getByRole('heading', { level: 1, name: 'Sign in to Antiphon' });
const message = (page: Page) =>
  page.getByRole('alert').filter({ hasText: 'This link was used before, or it is older than five minutes.' });

/** Asserts that nothing of a code stays in the address, the history, the storage or the page. */
const expectNoTrace = async ({ context, page, sent }: Tab): Promise<void> => {
  const code = codes.at(-1)?.slice(-20) ?? '';
  const kept = String(
    await page.evaluate(`(async () => JSON.stringify([
      location.href, document.referrer, document.cookie, document.title, history.state, { ...localStorage },
      { ...sessionStorage }, await caches.keys(), await indexedDB.databases(), document.documentElement.outerHTML,
    ]))()`),
  );
  expect([kept.includes(code), kept.includes('sign-in=')]).toEqual([false, false]);
  expect(new URL(page.url()).hash).toBe('');
  const session = await context.newCDPSession(page);
  const { entries } = await session.send('Page.getNavigationHistory');
  // The browser also records the typed address, which no page can change.
  expect(entries.filter(({ url }) => url.includes(code))).toEqual([]);
  expect(sent.filter((line) => line.includes(code))).toEqual([]);
  const cookies = await context.cookies();
  expect(cookies.filter(({ value }) => value.includes(code))).toEqual([]);
};

describe('the link that a start prints', () => {
  let first: Tab;
  let link: string;

  beforeAll(async () => {
    link = await printLink();
    first = await openTab();
    await first.page.goto('/no-such-page');
    await form(first.page).waitFor();
    await first.page.goto(link);
    await overview(first.page).waitFor();
  });

  it('signs a browser in, and leaves no trace of its code', async () => {
    expect(await first.context.cookies()).toHaveLength(1);
    await expectNoTrace(first);
    // Back and Forward lead to no address with the code either.
    await first.page.goBack();
    await first.page.goForward();
    await overview(first.page).waitFor();
    await expectNoTrace(first);
  });

  it('does not sign a second browser in, which says why and asks for a key', async () => {
    const second = await openTab();
    await second.page.goto(link);
    await form(second.page).waitFor();
    await message(second.page).waitFor();
    expect(await second.context.cookies()).toEqual([]);
    expect(await overview(second.page).count()).toBe(0);
    await expectNoTrace(second);
    expect(await findViolations(second.page)).toEqual([]);
    await second.page.getByLabel('API key').fill(adminKey);
    await second.page.keyboard.press('Enter');
    await overview(second.page).waitFor();
    expect(await message(second.page).count()).toBe(0);
    await second.context.close();
  });

  it('does no harm in the browser that it has signed in', async () => {
    // Only the fragment differs, so the browser loads the page again by another address first.
    await first.page.goto('/settings');
    await first.page.goto(link);
    await overview(first.page).waitFor();
    await first.page.getByText('Connected', { exact: true }).waitFor();
    expect(await first.page.getByRole('dialog').count()).toBe(0);
    await expectNoTrace(first);
  });

  it('signs in for five minutes only', async () => {
    const late = await printLink();
    const pool = createPool({ url: world.stack.databaseUrl, applicationName: 'spec' });
    await pool.query(
      `update api_keys set expires_at = now() - interval '1 s' where name like 'dashboard-link/%' and status = 'active'`,
    );
    await pool.end();
    const { page, ...tab } = await openTab();
    await page.goto(late);
    await message(page).waitFor();
    expect(await tab.context.cookies()).toEqual([]);
    await expectNoTrace({ page, ...tab });
    await tab.context.close();
  });

  it('is in no log of the gateway, and its code is no key', async () => {
    const log = world.stack.readLog('gateway-1');
    for (const code of codes) {
      expect(log.includes(code.slice(-20))).toBe(false);
      expect((await call(code, 'GET', '/me')).status).toBe(401);
    }
    await first.context.close();
  });
});

describe('the link of another workspace', () => {
  let tab: Tab;
  let link: string;
  const question = ({ page }: Tab) => page.getByRole('dialog', { name: 'Change your session?' });
  const workspaceOf = ({ page }: Tab): Promise<string> =>
    page.evaluate(`fetch('/api/v1/me').then((reply) => reply.json()).then(({ workspace }) => workspace)`);
  const sessionOf = async ({ context }: Tab) => (await context.cookies()).map(({ value }) => value);
  const createLink = async (token: string): Promise<string> => {
    const { body } = await call<{ path: string }>(token, 'POST', '/dashboard/links');
    codes.push(body.path.split('=')[1] ?? '');
    return body.path;
  };
  const follow = async ({ page }: Tab): Promise<void> => {
    // A link in a page of another origin, such as a mail.
    await page.goto('about:blank');
    await page.setContent(`<a href="${world.stack.gatewayUrl}${link}">look at this</a>`);
    await page.getByRole('link').click();
  };

  beforeAll(async () => {
    const made = await call<{ key: { token: string } }>(adminKey, 'POST', '/workspaces', { id: 'other' });
    expect(made.status).toBe(201);
    link = await createLink(made.body.key.token);
    tab = await openTab();
    await tab.page.goto('/');
    await tab.page.getByLabel('API key').fill(adminKey);
    await tab.page.keyboard.press('Enter');
    await overview(tab.page).waitFor();
  });
  afterAll(() => tab?.context.close());

  it.each(['the button', 'Escape'])('asks first, and changes nothing when %s refuses it', async (way) => {
    const before = await sessionOf(tab);
    await follow(tab);
    await question(tab).waitFor();
    const text = await question(tab).innerText();
    expect(text).toMatch(/works in the workspace "default" as .* signs in to the workspace "other" as /);
    expect(await findViolations(tab.page)).toEqual([]);
    expect(await workspaceOf(tab)).toBe('default');
    if (way === 'Escape') await tab.page.keyboard.press('Escape');
    else await tab.page.getByRole('button', { name: 'Stay in this session' }).click();
    await question(tab).waitFor({ state: 'detached' });
    await tab.page.reload();
    await overview(tab.page).waitFor();
    expect(await question(tab).count()).toBe(0);
    expect([await workspaceOf(tab), await sessionOf(tab)]).toEqual(['default', before]);
    await expectNoTrace(tab);
  });

  it('replaces the session when the user says so', async () => {
    await follow(tab);
    await tab.page.getByRole('button', { name: 'Use the link' }).click();
    await question(tab).waitFor({ state: 'detached' });
    await overview(tab.page).waitFor();
    expect(await workspaceOf(tab)).toBe('other');
    await expectNoTrace(tab);
  });

  it('signs a browser without a session in at once, which is asked nothing', async () => {
    const { body } = await call<{ key: { token: string } }>(adminKey, 'POST', '/workspaces', { id: 'third' });
    link = await createLink(body.key.token);
    const fresh = await openTab();
    await follow(fresh);
    await overview(fresh.page).waitFor();
    expect([await workspaceOf(fresh), await question(fresh).count()]).toEqual(['third', 0]);
    await fresh.context.close();
  });
});
