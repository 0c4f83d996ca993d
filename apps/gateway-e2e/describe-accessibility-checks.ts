import { beforeAll, describe, expect, it } from '@jest/globals';
import { addContent } from './dashboard-content.js';
import { createKeys } from './dashboard-keys.js';
import type { DashboardWorld } from './dashboard-world.js';
import { createApiCaller } from './stack-under-test.js';

/** Scripted checks of accessibility, in the world of another spec, after it has made a session. */
export const describeAccessibilityChecks = (worldOf: () => DashboardWorld, token: string): void => {
  const call = createApiCaller(() => worldOf().stack.gatewayUrl);
  const { hasFocus, tabTo, press } = createKeys(() => worldOf().page);
  const keyboard = () => worldOf().page.keyboard;
  const button = (name: string | RegExp) => worldOf().page.getByRole('button', { name, exact: true });
  const link = (name: string) => worldOf().page.getByRole('link', { name, exact: true });
  const heading = (name: string | RegExp) => worldOf().page.getByRole('heading', { level: 1, name });

  describe('scripted checks of accessibility', () => {
    const PATHS = [
      '/',
      '/agents',
      '/sessions',
      '/approvals',
      '/workflows',
      '/runs',
      '/events',
      '/money',
      '/memory',
      '/tools',
      '/files',
      '/tasks',
      '/plans',
      '/performance',
      '/audit',
      '/settings',
      '/settings/providers',
      '/chats',
      '/attention',
      '/messages',
      '/chats/new',
      '/compare',
      '/workflows/new',
    ];
    /** Pages of one thing each: an agent, a session, an answer and a run. */
    const pathsOfOne = async (): Promise<string[]> => {
      const { body } = await call<{ events: { streamId: string; data: { turnId: string } }[] }>(
        ...([token, 'GET', '/events?type=TurnRequested&limit=1'] as const),
      );
      const [turn] = body.events;
      const session = `/sessions/${turn?.streamId.slice('session-'.length)}`;
      const nodes = [{ id: 'only', agent: 'claude', prompt: 'hello' }];
      const workflow = await call<{ id: string }>(token, 'POST', '/workflows', { name: 'one', nodes });
      const run = await call<{ id: string }>(token, 'POST', `/workflows/${workflow.body.id}/start`, {});
      return ['/agents/gpt', session, `${session}/why/${turn?.data.turnId}`, `/runs/${run.body.id}`];
    };
    let all: string[] = [];
    beforeAll(async () => {
      all = [...PATHS, ...(await pathsOfOne()), ...Object.values(await addContent(worldOf(), { token }))];
    });
    const open = async (path: string): Promise<void> => {
      await worldOf().page.goto(path);
      await heading(/./).waitFor();
      await worldOf()
        .page.locator('main p[aria-busy=true]')
        .filter({ hasNotText: 'a sample' })
        .first()
        .waitFor({ state: 'detached' });
    };

    it('every page has its own title, one heading, landmarks, a language and a skip link that works', async () => {
      const { page } = worldOf();
      const titles = new Set<string>();
      for (const path of all) {
        await open(path);
        titles.add(await page.title());
        const counts = (await page.evaluate(
          `['h1', 'main', 'header', 'nav:not([aria-label])'].map((name) => document.querySelectorAll(name).length)`,
        )) as number[];
        expect([path, counts[0], counts[1], (counts[2] ?? 0) > 0, counts[3]]).toEqual([path, 1, 1, true, 0]);
        expect(await page.evaluate('document.documentElement.lang')).toBe('en');
      }
      expect(titles.size).toBe(all.length);
      await open('/agents');
      await page.evaluate('document.activeElement.blur()');
      await keyboard().press('Tab');
      expect(await hasFocus(link('Skip to the page'))).toBe(true);
      await keyboard().press('Enter');
      expect(await page.evaluate('document.activeElement.id')).toBe('main');
    });

    it('pages fit in 320 px, with text of 200 % and with wider spaces', async () => {
      const { page } = worldOf();
      const excess = () => page.evaluate('document.documentElement.scrollWidth - innerWidth');
      for (const path of all) {
        await page.setViewportSize({ width: 320, height: 800 });
        await open(path);
        expect([path, await excess()]).toEqual([path, 0]);
        await page.setViewportSize({ width: 1_440, height: 900 });
        await page.evaluate(`document.documentElement.style.fontSize = '200%'`);
        expect([path, '200 %', await excess()]).toEqual([path, '200 %', 0]);
        await page.evaluate(
          `document.documentElement.style.fontSize = ''; document.body.style.cssText = 'letter-spacing: 0.12em; word-spacing: 0.16em; line-height: 1.5'`,
        );
        expect([path, 'spaces', await excess()]).toEqual([path, 'spaces', 0]);
      }
    });

    it('states have an icon and a word, times a date, and lists their number of rows', async () => {
      const { page } = worldOf();
      for (const path of [
        '/agents',
        '/sessions',
        '/runs',
        '/tasks',
        '/plans',
        '/messages',
        '/audit',
        '/dev/states',
      ]) {
        await open(path);
        const bare = await page.evaluate(
          `[...document.querySelectorAll('[data-tone]')].filter((state) => !state.querySelector('svg') || state.textContent.trim() === '').length`,
        );
        const undated = await page.evaluate(
          `[...document.querySelectorAll('time')].filter((time) => Number.isNaN(Date.parse(time.dateTime))).length`,
        );
        expect([path, bare, undated]).toEqual([path, 0, 0]);
      }
      await open('/events');
      const table = page.getByRole('table', { name: /^Events/ });
      expect(Number(await table.getAttribute('aria-rowcount'))).toBeGreaterThan(20);
      expect(await table.getByRole('row').nth(1).getAttribute('aria-rowindex')).toBe('2');
      expect(await button('Pause').getAttribute('aria-pressed')).toBe('false');
    });

    it('nothing moves by itself where less motion is asked for', async () => {
      const { page } = worldOf();
      await page.emulateMedia({ reducedMotion: 'reduce' });
      for (const path of ['/', '/workflows/new', '/dev/states']) {
        await open(path);
        expect([
          path,
          await page.evaluate(
            `document.getAnimations().filter(({ playState, effect }) => playState === 'running' && effect.getComputedTiming().duration > 10).length`,
          ),
        ]).toEqual([path, 0]);
      }
      await page.emulateMedia({ reducedMotion: null });
    });

    it('Escape closes one layer and the focus returns; single keys can be turned off', async () => {
      const { page } = worldOf();
      await open('/agents');
      await press(button('Spawn an agent'));
      await page.getByRole('dialog').waitFor();
      await keyboard().press('Escape');
      await page.getByRole('dialog').waitFor({ state: 'detached' });
      expect(await hasFocus(button('Spawn an agent'))).toBe(true);
      await keyboard().press('?');
      await page.getByRole('dialog', { name: 'Keys' }).waitFor();
      await keyboard().press('Escape');
      await open('/settings');
      await tabTo(page.getByRole('checkbox', { name: /Keys without Ctrl/ }));
      await keyboard().press('Space');
      await open('/agents');
      await keyboard().press('?');
      // The next key is handled after it.
      await keyboard().press('Control+k');
      await page.getByRole('combobox', { name: /Page, agent/ }).waitFor();
      expect(await page.getByRole('dialog').count()).toBe(1);
      await page.evaluate('localStorage.clear()');
    });

    it('the sign-in page is named, accepts password managers, and says what failed', async () => {
      const { browser, stack } = worldOf();
      const page = await browser.newPage({ baseURL: stack.gatewayUrl });
      await page.goto('/');
      const field = page.getByLabel('API key');
      await field.waitFor();
      expect(await field.getAttribute('autocomplete')).toBe('current-password');
      expect(await field.getAttribute('aria-describedby')).not.toBeNull();
      await field.fill('ak_wrong');
      await page.keyboard.press('Enter');
      await page.getByRole('alert').waitFor();
      expect(await field.inputValue()).toBe('ak_wrong');
      expect(await page.locator('main').ariaSnapshot()).toContain('textbox "API key"');
      await page.close();
    });
  });
};
