import { createHash } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import { createChatsOnPage } from './chats-on-page.js';
import { findViolations, readApi, savePictures, type DashboardWorld } from './dashboard-world.js';

/** Tests of branches, in the world of another spec. */
export const describeChatBranches = (world: () => DashboardWorld): void =>
  describe('branches of a chat', () => {
    const { button, said, send, beginChat, eventsOf } = createChatsOnPage(world);

    const hashOf = async (chat: string): Promise<string> =>
      createHash('sha256')
        .update(JSON.stringify(await eventsOf(chat)))
        .digest('hex');

    it('edits a message on a branch, tries an answer again, and leaves the origin as it is', async () => {
      const { page } = world();
      const origin = await beginChat('first question');
      await said('You said: first question').waitFor();
      await send('second question');
      await said('You said: second question').waitFor();
      const before = await hashOf(origin);
      const turn = page.locator('article').filter({ hasText: 'You said: second question' });
      await turn.hover();
      await turn.getByRole('button', { name: 'Edit and send again' }).click();
      await page.getByRole('textbox', { name: 'New text of the message' }).fill('a better question');
      await button('Send on a new branch').click();
      await said('You said: a better question').waitFor();
      const branch = page.url().slice(-36);
      expect(branch).not.toBe(origin);
      expect(await said('You said: first question').isVisible()).toBe(true);
      expect(await said('You said: second question').count()).toBe(0);
      await page.getByText('2/2', { exact: true }).waitFor();
      expect(await page.getByText('1 message is on the other branch').isVisible()).toBe(true);
      await turn.or(page.locator('article').last()).last().hover();
      await page.locator('article').last().getByRole('button', { name: 'Try again' }).click();
      await page.getByText('3/3', { exact: true }).waitFor();
      await said('You said: a better question').waitFor();
      expect(page.url().slice(-36)).not.toBe(branch);
      await savePictures(page, 'branches');
      expect(await findViolations(page)).toEqual([]);
      await button('Previous branch').click();
      await page.waitForURL(`**/chats/${branch}`);
      await page.getByText('2/3', { exact: true }).waitFor();
      await page.reload();
      await page.getByText('2/3', { exact: true }).waitFor();
      expect(await page.locator('article').allInnerTexts()).toEqual([
        expect.stringContaining('first question'),
        expect.stringContaining('a better question'),
      ]);
      expect(await hashOf(origin)).toBe(before);
    });

    it('corrects a message for later ones, without a branch', async () => {
      const { page } = world();
      const chat = await beginChat('a wrong word');
      await said('You said: a wrong word').waitFor();
      await page.locator('article').hover();
      await button('Edit and send again').click();
      await page.getByRole('textbox', { name: 'New text of the message' }).fill('a right word');
      await button('Correct the text').click();
      await said('a right word').waitFor();
      expect(page.url().slice(-36)).toBe(chat);
      expect(await said('You said: a wrong word').isVisible()).toBe(true);
      expect((await eventsOf(chat)).at(-1)).toMatchObject({
        ...{ type: 'ChatMessageEdited', data: { part: 'message', content: 'a right word' } },
      });
      await send('again');
      await said('You said: again').waitFor();
      const { messages } = world().mock.calls.at(-1)?.seen.body as { messages: unknown };
      expect(JSON.stringify(messages)).toContain('a right word');
    });

    it('asks which files the branch works with if the chat has changed some', async () => {
      const { page } = world();
      await page.goto('/chats/new?agent=writer');
      await send('write the file');
      await page.waitForURL(/\/chats\/[0-9a-f-]{36}$/);
      await said('It is written.').waitFor();
      await button('Open the side panel').click();
      const panel = page.getByRole('complementary', { name: 'About this chat' });
      const changed = panel.getByRole('list', { name: 'Changed files' });
      await changed.getByRole('link', { name: 'notes.md' }).waitFor();
      await changed.getByText('Changes', { exact: true }).click();
      const diff = changed.getByRole('region', { name: 'Changes of notes.md in this chat' });
      await diff.waitFor();
      expect((await diff.innerText()).split('\n')).toEqual([
        '@@ -0,0 +1,1 @@',
        '+one',
        '\\ No newline at end of file',
      ]);
      expect(await findViolations(page)).toEqual([]);
      await savePictures(page, 'panel-changes');
      await panel.getByRole('button', { name: 'Take back changes' }).click();
      await page.getByRole('dialog').getByText('goes to the bin').waitFor();
      await page.getByRole('dialog').getByRole('button', { name: 'Close' }).first().click();
      await button('Close the side panel').first().click();
      await page.locator('article').last().hover();
      await button('Try again').click();
      const dialog = page.getByRole('dialog');
      await dialog.getByText('notes.md', { exact: true }).waitFor();
      await savePictures(page, 'files-dialog');
      expect(await findViolations(page)).toEqual([]);
      await dialog.getByLabel('Files as they were, in an own copy').check();
      await dialog.getByRole('button', { name: 'Continue' }).click();
      await page.getByText('2/2', { exact: true }).waitFor();
      const { chats } = await readApi<{ chats: { branchOf?: { files: string } }[] }>(
        world(),
        `/api/v1/workspaces/default/chats/${page.url().slice(-36)}/branches`,
      );
      expect(chats.map(({ branchOf }) => branchOf?.files)).toEqual([undefined, 'own']);
    });
  });
