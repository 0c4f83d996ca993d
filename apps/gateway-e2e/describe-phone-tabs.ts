import { describe, expect, it } from '@jest/globals';
import { findViolations, savePictures, type DashboardWorld } from './dashboard-world.js';

/** Follows the tabs that a narrow screen has. */
export const describePhoneTabs = (world: () => DashboardWorld): void =>
  describe('a phone', () => {
    it('has five tabs at the bottom: overview, chats, files, what waits, and more', async () => {
      const { page } = world();
      await page.setViewportSize({ width: 390, height: 844 });
      const tabs = page.getByRole('navigation', { name: 'Main pages' });
      await page.goto('/agents');
      await tabs.getByRole('link').first().waitFor();
      expect((await tabs.locator('a, button').allInnerTexts()).map((text) => text.trim())).toEqual([
        ...['Overview', 'Chats', 'Files', 'Attention', 'More'],
      ]);
      await tabs.getByRole('link', { name: 'Chats' }).click();
      await page.getByRole('heading', { name: 'Chats', level: 1 }).waitFor();
      expect(await tabs.getByRole('link', { name: 'Chats' }).getAttribute('aria-current')).toBe('page');
      await tabs.getByRole('button', { name: 'More' }).click();
      await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Audit' }).waitFor();
      expect(await findViolations(page)).toEqual([]);
      await savePictures(page, 'tabs');
      await tabs.getByRole('link', { name: 'Overview' }).click();
      await page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor();
      await page.setViewportSize({ width: 1_440, height: 900 });
    });
  });
