import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { startDashboardWorld, type DashboardWorld } from './dashboard-world.js';
import { readEvents, runCli } from './stack-under-test.js';

jest.setTimeout(120_000);

/** More events than the list has rows in the page. */
const EVENTS = 60;

let world: DashboardWorld;
beforeAll(async () => {
  world = await startDashboardWorld();
  while ((await readEvents(world.stack)).length < EVENTS) {
    const { code, stderr } = await runCli(world.stack, ['chat', 'Hello there', '--agent', 'claude']);
    expect([code, stderr]).toEqual([0, expect.any(String)]);
  }
});
afterAll(() => world?.stop());

const heading = () => world.page.getByRole('heading', { level: 1 });
const pressKey = (key: string): Promise<void> => world.page.keyboard.press(key);

describe('the list of events', () => {
  it('is one stop of Tab however long it is, and arrow keys open its rows', async () => {
    const { page } = world;
    await page.goto('/events');
    const list = page.getByRole('table', { name: 'Events, newest first' });
    await list.getByRole('row').nth(12).waitFor();
    /** Position in the row that has the focus. */
    const position = async (): Promise<number> =>
      Number(
        String(
          await page.evaluate(
            `document.activeElement.closest('[role=row]')?.firstElementChild.textContent ?? ''`,
          ),
        ).replaceAll(',', ''),
      );
    await list.focus();
    await pressKey('ArrowDown');
    const first = await position();
    expect(first).toBeGreaterThanOrEqual(EVENTS);
    for (let pressed = 0; pressed < 40; pressed++) await pressKey('ArrowDown');
    expect(await position()).toBe(first - 40);
    await pressKey('ArrowUp');
    await pressKey('Enter');
    await page.waitForURL((url) => url.searchParams.get('open') === String(first - 39));
    await pressKey('Tab');
    expect(await list.locator(':focus').count()).toBe(0);
    await pressKey('Shift+Tab');
    expect(await list.and(page.locator(':focus')).count()).toBe(1);
  });
});

describe('the focus', () => {
  it.each(['/settings', '/money', '/audit', '/events'])(
    'is never under the bar at the top of %s, in both directions',
    async (path) => {
      const { page } = world;
      await page.setViewportSize({ width: 1_440, height: 420 });
      const covered = `(() => {
        const element = document.activeElement;
        const bar = document.querySelector('header');
        if (!element || !element.closest('main')) return '';
        const { top, bottom, height } = element.getBoundingClientRect();
        window.inPage = (window.inPage ?? 0) + 1;
        // Of an element that is higher than the window, a part is in view.
        const seen = height > innerHeight ? bottom : top + Math.min(height, 24);
        return seen <= bar.getBoundingClientRect().bottom ? element.outerHTML.slice(0, 200) : '';
      })()`;
      await page.goto(path);
      await heading().waitFor();
      const found: string[] = [];
      for (const key of ['Tab', 'Shift+Tab'])
        for (let pressed = 0; pressed < 60; pressed++) {
          await pressKey(key);
          const element = String(await page.evaluate(covered));
          if (element !== '') found.push(`${key}: ${element}`);
        }
      expect(found).toEqual([]);
      expect(Number(await page.evaluate('window.inPage'))).toBeGreaterThan(5);
    },
  );

  it('is seen with more contrast where that is asked for', async () => {
    const { page } = world;
    const borderOf = () =>
      page.evaluate(`getComputedStyle(document.documentElement).getPropertyValue('--border')`);
    await page.goto('/settings');
    await heading().waitFor();
    const usual = await borderOf();
    await page.emulateMedia({ contrast: 'more' });
    const strong = await page.evaluate(
      `getComputedStyle(document.documentElement).getPropertyValue('--border-strong')`,
    );
    expect(await borderOf()).toBe(strong);
    expect(strong).not.toBe(usual);
    await page.emulateMedia({ contrast: null });
  });
});
