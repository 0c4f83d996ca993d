import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { tmpdir } from 'node:os';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import type { Page } from 'playwright-core';
import { addContent, type ContentPages } from './dashboard-content.js';
import { findViolations, readApi, startDashboardWorld, type DashboardWorld } from './dashboard-world.js';
import { readEvents, waitForValue } from './stack-under-test.js';

jest.setTimeout(300_000);

const FOLDER = process.env['ANTIPHON_SCREENSHOTS'] ?? join(tmpdir(), 'antiphon-dashboard');
const PAGES = [
  '/',
  '/agents',
  '/agents/gpt',
  '/agents?view=table',
  '/agents?view=tree',
  '/agents/gpt?tab=metrics',
  '/agents/gpt?tab=tasks',
  '/agents/gpt?tab=messages',
  '/agents/gpt?tab=money',
  '/agents/gpt?tab=definition',
  '/sessions',
  '/messages',
  '/messages?write=1',
  '/approvals',
  '/workflows',
  '/workflows/new',
  '/runs',
];
const MORE = [
  '/events?open=1',
  '/money',
  '/money?by=model',
  '/compare',
  '/dev/states',
  '/dev/states?at=10',
  '/memory',
  '/files',
  '/tasks',
  '/tasks?create=1',
  '/tasks?tab=needs',
  '/tasks?view=board',
  '/plans',
  '/files?bin=1',
  '/files?new=folder',
  '/performance',
  '/audit',
  '/settings',
  '/settings/providers',
  '/settings/providers?connect=1',
  '/chats',
  '/chats/new',
  '/attention',
  '/tools',
  '/tools?tool=calculator',
  '/no-such-page',
];
const WIDTHS = [1_920, 1_440, 390];
/** Pages of the past that are of no session. */
const PAST = [
  ...[
    '/',
    '/agents',
    '/approvals',
    '/events?open=1',
    '/money',
    '/money?by=model',
    '/memory',
    '/audit',
    '/files',
    '/tools?tool=calculator',
  ],
  ...['/runs', '/tasks', '/plans', '/messages', '/chats', '/attention', '/sessions', '/performance'],
];
const WORKFLOW = {
  name: 'two steps',
  nodes: [
    { id: 'first', agent: 'claude', prompt: 'hello' },
    { id: 'second', agent: 'claude', prompt: 'again', needs: ['first'] },
  ],
};

let world: DashboardWorld;
let session: string;
let why: string;
let comparison: string;
let turnPosition: number;
let runId: string;
let workflowId: string;
let head: number;
let content: ContentPages;
beforeAll(async () => {
  world = await startDashboardWorld();
  const { page, stack } = world;
  mkdirSync(FOLDER, { recursive: true });
  await page.goto('/agents/gpt');
  await page.getByLabel('Message to Gpt').fill('please calculate it');
  await page.getByRole('button', { name: 'Start a conversation' }).click();
  await page.getByRole('button', { name: 'Approve' }).waitFor();
  const [turn] = await readEvents(stack, { type: 'TurnRequested' });
  const id = turn?.streamId.slice('session-'.length) ?? '';
  turnPosition = turn?.position ?? 0;
  session = `/sessions/${id}`;
  why = `${session}/why/${String(turn?.data['turnId'])}`;
  const headers = { 'content-type': 'application/json' };
  const post = async (path: string, body: object): Promise<Record<string, unknown>> => {
    const request = { method: 'POST', headers, body: JSON.stringify(body) };
    const response = await fetch(`${stack.gatewayUrl}/api/v1${path}`, request);
    return (await response.json()) as Record<string, unknown>;
  };
  const { sessionId } = await post(`${session}/fork`, { atVersion: 1, whatIf: { turns: 1 } });
  comparison = `/compare?a=${id}&b=${String(sessionId)}`;
  workflowId = String((await post('/workflows', WORKFLOW))['id']);
  runId = String((await post(`/workflows/${workflowId}/start`, {}))['id']);
  await waitForValue('the end of the run', async () => {
    const { status } = await readApi<{ status: string }>(world, `/api/v1/runs/${runId}`);
    return status === 'completed' || undefined;
  });
  content = await addContent(world);
  ({ head } = await readApi<{ head: number }>(world, '/api/v1/events?limit=1'));
}, 240_000);
afterAll(() => world?.stop());

/** Draws a page, and asserts that it is not too wide and violates no rule. */
const check = async (page: Page, path: string, width: number, colorScheme: string): Promise<void> => {
  const name = path.replaceAll(/[^a-z0-9]+/gi, '-').replaceAll(/^-|-$/g, '') || 'overview';
  const file = `${name}-${width}-${colorScheme}.png`;
  await page.screenshot({ path: join(FOLDER, file), fullPage: true });
  const excess = await page.evaluate('document.documentElement.scrollWidth - innerWidth');
  expect([path, excess, await findViolations(page)]).toEqual([path, 0, []]);
};

describe.each(['light', 'dark'] as const)('every page of the dashboard, %s', (colorScheme) => {
  it.each(WIDTHS)('violates no rule of WCAG 2.2 AA and fits in %d px', async (width) => {
    const { page } = world;
    await page.setViewportSize({ width, height: 900 });
    await page.emulateMedia({ colorScheme });
    for (const path of [
      ...PAGES,
      ...MORE,
      session,
      `${session}?at=20`,
      `${session}?at=20&replay=1`,
      why,
      comparison,
      `/runs/${runId}`,
      `/workflows/${workflowId}/edit`,
      ...Object.values(content),
      ...[...PAST, `/runs/${runId}`, why, ...Object.values(content)].map(
        (path) => `${path}${path.includes('?') ? '&' : '?'}at=${head}`,
      ),
      '/agents?at=10',
      '/approvals?at=20',
    ]) {
      await page.goto(path);
      await page.getByRole('heading', { level: 1 }).waitFor();
      // The page of states always shows one part that loads.
      const loading = page.locator('main p[aria-busy=true]').filter({ hasNotText: 'a sample' });
      await loading.first().waitFor({ state: 'detached' });
      await check(page, path, width, colorScheme);
    }
  });

  it('and the sign-in page, which violates no rule either', async () => {
    const page = await world.browser.newPage({ baseURL: world.stack.gatewayUrl, colorScheme });
    // The gateway of this spec lets everyone in.
    await page.route('**/api/v1/me', (route) => route.fulfill({ status: 401, body: '{}' }));
    for (const width of WIDTHS) {
      await page.setViewportSize({ width, height: 900 });
      await page.goto('/');
      await page.getByLabel('API key').waitFor();
      await check(page, '/sign-in', width, colorScheme);
    }
    await page.close();
  });
});

describe('the pages of events, settings and graphs', () => {
  it('link an event to its cause and its effects', async () => {
    const { page } = world;
    await page.goto(`/events?open=${turnPosition}`);
    const effects = page.getByRole('list', { name: 'Effects' }).getByRole('link');
    await effects.first().click();
    await page
      .getByRole('link', { name: /· TurnRequested$/ })
      .first()
      .click();
    await page.getByRole('heading', { name: /TurnRequested$/ }).waitFor();
  });

  it('show the plug-ins with their state, capabilities and tools', async () => {
    const { plugins } = await readApi<{ plugins: { name: string; status: string; tools: string[] }[] }>(
      world,
      '/api/v1/plugins',
    );
    await world.page.goto('/settings');
    const rows = world.page.getByRole('region', { name: 'Plug-ins' }).locator('tbody tr');
    await rows.first().waitFor();
    const texts = await rows.allInnerTexts();
    expect(texts).toHaveLength(plugins.length);
    for (const [index, { name, status, tools }] of plugins.entries())
      for (const text of [name, status, ...tools]) expect(texts[index]).toContain(text);
  });

  it('show the effective configuration, filtered, with each origin and without a secret', async () => {
    const { settings } = await readApi<{ settings: { key: string; value: unknown; origin: string }[] }>(
      world,
      '/api/v1/config',
    );
    const found = settings.filter(({ key }) => key.includes('api_key_env'));
    expect(found.length).toBeGreaterThan(0);
    const { page } = world;
    await page.goto('/settings');
    const region = page.getByRole('region', { name: 'Effective configuration' }).last();
    await page.getByLabel('Setting', { exact: true }).fill('api_key_env');
    await page.waitForURL(/setting=api_key_env/);
    const rows = region.locator('tbody tr');
    await rows.nth(found.length).waitFor({ state: 'detached' });
    const texts = await rows.allInnerTexts();
    for (const [index, { key, origin }] of found.entries())
      expect(texts[index]?.split('\t')).toEqual([key, 'set', origin]);
  });

  it('lay graphs out in a worker', async () => {
    // A browser that has no places from the editor.
    const page = await world.browser.newPage({ baseURL: world.stack.gatewayUrl });
    const worker = page.waitForEvent('worker');
    await page.goto(`/runs/${runId}`);
    expect((await worker).url()).toContain('layout.worker');
    await page.close();
  });
});

describe('the policy of the page', () => {
  it('reports nothing, and no request leaves the origin', () => {
    expect(world.leaks).toEqual([]);
  });
});
