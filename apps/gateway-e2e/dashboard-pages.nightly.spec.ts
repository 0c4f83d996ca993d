import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { tmpdir } from 'node:os';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { findViolations, startDashboardWorld, type DashboardWorld } from './dashboard-world.js';
import { readEvents } from './stack-under-test.js';

jest.setTimeout(300_000);

const FOLDER = process.env['ANTIPHON_SCREENSHOTS'] ?? join(tmpdir(), 'antiphon-dashboard');
const PAGES = [
  '/',
  '/agents',
  '/agents/gpt',
  '/sessions',
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
  '/performance',
  '/audit',
  '/settings',
  '/no-such-page',
];
const WIDTHS = [1_440, 390];

let world: DashboardWorld;
let session: string;
let why: string;
let comparison: string;
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
  session = `/sessions/${id}`;
  why = `${session}/why/${String(turn?.data['turnId'])}`;
  const headers = { 'content-type': 'application/json' };
  const body = JSON.stringify({ atVersion: 1, whatIf: { turns: 1 } });
  const forked = await fetch(`${stack.gatewayUrl}/api/v1${session}/fork`, { method: 'POST', headers, body });
  const { sessionId } = (await forked.json()) as { sessionId: string };
  comparison = `/compare?a=${id}&b=${sessionId}`;
}, 240_000);
afterAll(() => world?.stop());

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
      '/agents?at=10',
      '/approvals?at=20',
    ]) {
      await page.goto(path);
      await page.getByRole('heading', { level: 1 }).waitFor();
      // The page of states always shows one part that loads.
      const loading = page.locator('main p[aria-busy=true]').filter({ hasNotText: 'a sample' });
      await loading.first().waitFor({ state: 'detached' });
      const name = path.replaceAll(/[^a-z0-9]+/gi, '-').replaceAll(/^-|-$/g, '') || 'overview';
      await page.screenshot({ path: join(FOLDER, `${name}-${width}-${colorScheme}.png`) });
      const excess = await page.evaluate('document.documentElement.scrollWidth - innerWidth');
      expect([path, excess, await findViolations(page)]).toEqual([path, 0, []]);
    }
  });
});

describe('the policy of the page', () => {
  it('reports nothing, and no request leaves the origin', () => {
    expect(world.leaks).toEqual([]);
  });
});
