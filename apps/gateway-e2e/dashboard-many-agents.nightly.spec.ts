import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import type { AgentView } from '@antiphon/contracts/agent';
import { giveTimeToFail } from '@antiphon/testing/waits';
import { readApi, startDashboardWorld, type DashboardWorld } from './dashboard-world.js';
import { createApiCaller, waitForValue } from './stack-under-test.js';

jest.setTimeout(240_000);

const COUNT = 200;
/** Time for which a page at rest makes no request. */
const IDLE_MS = 20_000;

let world: DashboardWorld;
const call = createApiCaller(() => world.stack.gatewayUrl);
beforeAll(async () => {
  world = await startDashboardWorld({ model: () => ({ text: ['well'] }), settings: '' });
  for (let from = 0; from < COUNT; from += 20)
    await Promise.all(
      Array.from({ length: 20 }, (_, n) =>
        call('', 'POST', '/agents', { name: `Agent ${from + n}`, base: 'gpt', capabilities: [`c${n}`] }),
      ),
    );
  await waitForValue('all agents in the list', async () => {
    const { agents } = await readApi<{ agents: AgentView[] }>(world, '/api/v1/agents');
    return agents.length === COUNT + 2 ? true : undefined;
  });
}, 180_000);
afterAll(() => world?.stop());

describe('the cards of 200 agents', () => {
  it('are drawn and read only where they are in view', async () => {
    const { page } = world;
    const read = new Set<string>();
    page.on('request', (request) => {
      const { pathname, searchParams } = new URL(request.url());
      if (pathname !== '/api/v1/agent-metrics') return;
      for (const id of searchParams.get('agents')?.split(',') ?? []) read.add(id);
    });
    await page.goto('/agents');
    await page.locator('[data-agent]').first().waitFor();
    await page.waitForLoadState('networkidle');
    const shown = await page.locator('[data-agent]').count();
    expect(shown).toBeLessThanOrEqual(48);
    expect(read.size).toBe(shown);
    expect(await page.locator('[data-agent]').first().getAttribute('aria-setsize')).toBe(String(COUNT + 2));
    // The page is as high as with all of them, and its end shows the last ones.
    // At once: the End key scrolls past the sections between, which are then read too.
    await page.evaluate('scrollTo({ top: document.body.scrollHeight, behavior: "instant" })');
    const last = page.locator(`[data-agent][aria-posinset="${COUNT + 2}"]`);
    await last.getByText('no sample yet').waitFor();
    expect(await page.locator('[data-agent]').count()).toBeLessThanOrEqual(48);
    expect(read.size).toBeLessThanOrEqual(96);
  });

  it('are the 24 that matter on the overview, with one read of their metrics, and none at rest', async () => {
    const { page } = world;
    await page.goto('/');
    await page.locator('[data-agent]').nth(23).waitFor();
    // The count of the top bar is read once, after the page.
    await page.getByRole('button', { name: /^Attention \d/ }).waitFor();
    await page.waitForLoadState('networkidle');
    expect(await page.locator('[data-agent]').count()).toBe(24);
    const requests: string[] = [];
    page.on('request', (request) => requests.push(request.url()));
    await giveTimeToFail(IDLE_MS);
    expect(requests).toEqual([]);
  });
});
