import { expect, it } from '@jest/globals';
import type { DashboardWorld } from './dashboard-world.js';
import { readEvents, waitForValue } from './stack-under-test.js';

/** Tests of pages of the past, in the world of another spec in which a turn has failed. */
export const describePastPages = (worldOf: () => DashboardWorld): void => {
  it('shows nothing of after the position on pages of the past', async () => {
    // A page of its own, because the turn that is not found is an error of its console.
    const page = await worldOf().browser.newPage({ baseURL: worldOf().stack.gatewayUrl });
    const [failed] = (await readEvents(worldOf().stack, { type: 'TurnFailed' })).slice(-1);
    const at = Number(failed?.position);
    await page.goto(`/events?at=10&open=${at}`);
    await page.getByText('This event is after the position of the page').waitFor();
    await page.getByRole('button', { name: 'Event before it' }).click();
    await page.waitForURL((url) => url.searchParams.get('open') === '10');
    const next = page.getByRole('button', { name: 'Event after it' });
    expect(await next.getAttribute('aria-disabled')).toBe('true');
    const asked = page.waitForRequest(/\/turns\/[0-9a-f-]{36}\?at=10$/);
    await page.goto(`/why/${String(failed?.data['turnId'])}?at=10`);
    await asked;
    await page.getByText('It may have come after event 10.').waitFor();
    const recalled = page.waitForRequest(new RegExp(`/memory/[0-9a-f-]{36}\\?at=${at}$`));
    await page.goto(`/memory?agent=gpt&at=${at}`);
    await page.getByText('the message it was learned from').first().click();
    await recalled;
    await page.close();
  });

  it('says which parts of a page of the past are current', async () => {
    const { page } = worldOf();
    const counts: Record<string, number> = {
      '/': 2,
      '/audit': 4,
      '/performance': 2,
      '/settings': 1,
      '/settings/providers': 1,
    };
    for (const [path, count] of Object.entries(counts)) {
      await page.goto(path);
      await page.getByRole('heading', { level: 1 }).waitFor();
      await page.locator('main p[aria-busy=true]').first().waitFor({ state: 'detached' });
      expect([path, await page.locator('[data-of-now]').count()]).toEqual([path, 0]);
      await page.goto(`${path}?at=10`);
      await waitForValue(`${count} current parts on ${path}`, async () =>
        (await page.locator('[data-of-now]').count()) === count ? true : undefined,
      );
    }
  });

  it('shows the failures of the day before the position, years later too', async () => {
    const [failed] = (await readEvents(worldOf().stack, { type: 'TurnFailed' })).slice(-1);
    const page = await worldOf().browser.newPage({ baseURL: worldOf().stack.gatewayUrl });
    await page.clock.setFixedTime(new Date('2099-01-01T00:00:00Z'));
    await page.goto(`/?at=${failed?.position}`);
    const failures = page.getByRole('region', { name: 'Failures of the 24 hours before the position' });
    await failures.getByRole('link', { name: 'turn failed' }).waitFor();
    await page.close();
  });
};
