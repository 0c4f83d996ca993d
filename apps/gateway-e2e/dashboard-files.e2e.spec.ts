import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import type { MockScript } from '@antiphon/testing/providers';
import { findViolations, savePictures, startDashboardWorld, type DashboardWorld } from './dashboard-world.js';
import { FILE_SETTINGS, FilesOnPage, MOST_BYTES, uploadOf } from './files-on-page.js';
import { createApiCaller, readEvents, waitForValue } from './stack-under-test.js';

jest.setTimeout(60_000);

let world: DashboardWorld;
beforeAll(async () => {
  world = await startDashboardWorld({ settings: FILE_SETTINGS, model });
}, 120_000);
afterAll(() => world?.stop());

const files = new FilesOnPage(() => world);
const call = createApiCaller(() => world.stack.gatewayUrl);
const button = (name: string | RegExp) => world.page.getByRole('button', { name, exact: true });
/** Lets the agent write a file in a new chat. Returns the turn. */
const say = async (name: string, message: string): Promise<string> => {
  const chat = { name, agent: 'writer', message };
  const { status } = await call('', 'POST', '/workspaces/default/chats', chat);
  expect(status).toBe(201);
  return waitForValue('the file', async () => {
    const facts = await readEvents(world.stack, { type: 'FileWritten' });
    const fact = facts.find(({ data }) => data['path'] === `${name}.md`);
    return (fact?.data['cause'] as { turnId?: string } | undefined)?.turnId;
  });
};
/** Writes the file that the message names. */
const model: MockScript = ({ user, toolResults }) => {
  const path = /write the file (\S+)/.exec(user)?.[1];
  if (path === undefined || toolResults.length > 0) return { text: ['done'] };
  return { tools: [{ id: 'call_1', name: 'write', input: { path, content: 'one\ntwo\n' } }] };
};
/** Most uploads that are sent at once, five times: the others wait. */
const UPLOADS = 20;

describe('the page of files in Chromium', () => {
  it('uploads files, each with its state, and names the one that the quota refuses', async () => {
    const { page } = world;
    await page.goto('/files');
    await page.getByText('No files yet').waitFor();
    const chosen = Array.from({ length: UPLOADS }, (_, nth) =>
      uploadOf(`note-${nth}.txt`, `number ${nth}\n`),
    );
    await files.uploads.setInputFiles([...chosen, uploadOf('large.bin', 'x'.repeat(MOST_BYTES + 1))]);
    await page
      .getByRole('heading', { name: `${UPLOADS} of ${UPLOADS + 1} uploads stored, 1 failed` })
      .waitFor();
    await page.getByText(/large\.bin.*1500001 bytes/).waitFor();
    const entries = await files.list('');
    expect(entries.map(({ path }) => path).sort()).toEqual(chosen.map(({ name }) => name).sort());
    expect(await files.textOf('note-17.txt')).toBe('number 17\n');
    await files.row('note-0.txt').waitFor();
    await savePictures(world.page, 'uploads');
    // A name in use is asked about once, and a replacement is a version.
    await files.uploads.setInputFiles(
      ['note-1.txt', 'note-2.txt'].map((name) => uploadOf(name, 'replaced\n')),
    );
    await page.getByText('2 files have names that are in use.').waitFor();
    await button('Replace').click();
    await page.getByRole('heading', { name: /^2 of \d+ uploads stored/ }).waitFor();
    expect((await files.historyOf('note-1.txt')).map(({ type }) => type)).toEqual(['written', 'written']);
  });

  it('renames, bins and restores by keys, and finds by name', async () => {
    const { page } = world;
    await files.write('src/lib/deep.ts', 'export const one = 1;\n');
    await page.goto('/files');
    await files.row('src').waitFor();
    await files.tree.focus();
    await page.keyboard.type('src');
    await page.keyboard.press('ArrowRight');
    await files.row('lib').waitFor();
    await page.keyboard.press('ArrowRight');
    await page.keyboard.press('ArrowRight');
    await files.row('deep.ts').waitFor();
    await page.keyboard.press('ArrowRight');
    await page.keyboard.press('F2');
    await page.getByLabel('New path').fill('src/lib/renamed.ts');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { level: 2, name: 'src/lib/renamed.ts' }).waitFor();
    expect((await files.list('src/lib')).map(({ path }) => path)).toEqual(['src/lib/renamed.ts']);
    await files.row('renamed.ts').waitFor();
    await files.tree.focus();
    await page.keyboard.press('Delete');
    await page.getByRole('dialog').getByRole('button', { name: 'Move to the bin' }).click();
    await page.getByText('There is no such file now').waitFor();
    await button('Bin').click();
    await page
      .getByRole('row', { name: /renamed\.ts/ })
      .getByRole('button', { name: 'Restore' })
      .click();
    await page.getByText('The bin is empty').waitFor();
    await page.getByLabel('Find files by a part of their path').fill('RENAMED');
    await files.row('src/lib/renamed.ts').waitFor();
    expect(await files.tree.getByRole('treeitem').count()).toBe(1);
  });

  it('loses no edit when another window is faster, and offers three ways to continue', async () => {
    const { page } = world;
    await files.write('shared.md', 'one\ntwo\nthree\n');
    await files.open('shared.md', '?edit=1');
    await files.type('one\ntwo\nmine\n');
    const other = await world.browser.newPage({ baseURL: world.stack.gatewayUrl });
    await other.goto(page.url());
    await files.type('one\ntwo\ntheirs\n', other);
    await other.getByRole('button', { name: 'Save', exact: true }).click();
    await waitForValue(
      'the text of the other window',
      async () => (await files.textOf('shared.md')).includes('theirs') || undefined,
    );
    await other.close();
    await page.getByText(/was stored meanwhile/).waitFor();
    await button('Save').click();
    const dialog = page.getByRole('dialog');
    await dialog.getByText('+theirs').waitFor();
    // The same difference as the refusal of the API has.
    const first = (await files.historyOf('shared.md')).at(-1);
    const shown = await dialog.getByRole('region', { name: 'Changes since you began' }).innerText();
    expect(shown.replaceAll(/\n+/g, '\n').trim()).toBe(await files.diffSince('shared.md', first?.digest));
    expect(await findViolations(page)).toEqual([]);
    await dialog.getByRole('button', { name: 'Merge by hand' }).click();
    const merged = page.getByRole('textbox', { name: 'Text that you save' });
    await merged.click();
    await page.keyboard.press('Control+a');
    await page.keyboard.insertText('one\ntwo\ntheirs\nmine\n');
    await savePictures(world.page, 'merge');
    await button('Save').click();
    await page.getByText('theirs', { exact: false }).first().waitFor();
    await waitForValue(
      'the merge',
      async () => (await files.textOf('shared.md')).includes('mine') || undefined,
    );
    expect(await files.textOf('shared.md')).toBe('one\ntwo\ntheirs\nmine\n');
    // Every version stays, and nothing else was written.
    expect((await files.historyOf('shared.md')).map(({ type: kind }) => kind)).toEqual([
      'written',
      'written',
      'written',
    ]);
  });

  it('asks before a changed text is left, and saves none', async () => {
    const { page } = world;
    await files.open('shared.md', '?edit=1');
    await files.type('never saved');
    await page.getByRole('link', { name: 'Agents' }).click();
    const dialog = page.getByRole('dialog', { name: 'Leave without saving?' });
    await dialog.getByRole('button', { name: 'Stay' }).click();
    expect(await files.editor.innerText()).toContain('never saved');
    await page.getByRole('link', { name: 'Agents' }).click();
    await dialog.getByRole('button', { name: 'Leave without saving' }).click();
    await page.getByRole('heading', { level: 1, name: 'Agents' }).waitFor();
    expect(await files.textOf('shared.md')).toBe('one\ntwo\ntheirs\nmine\n');
  });

  it('compares any two versions, and restores one as a new version', async () => {
    const { page } = world;
    const [newest, , first] = await files.historyOf('shared.md');
    await files.open('shared.md', `?from=${first?.version}&v=${newest?.version}`);
    const region = page.getByRole('region', { name: /^Changes from version/ });
    await region.waitFor();
    const shown = (await region.innerText()).replaceAll(/\n+/g, '\n').trim();
    expect(shown).toBe('@@ -1,3 +1,4 @@\n one\n two\n-three\n+theirs\n+mine');
    expect(shown).toBe(await files.diffSince('shared.md', first?.digest));
    await savePictures(world.page, 'versions');
    await button('Side by side').click();
    await page.getByRole('textbox', { name: 'Text before' }).getByText('three').waitFor();
    await page.getByRole('textbox', { name: 'Text after' }).getByText('theirs').waitFor();
    expect(new URL(page.url()).searchParams.get('diff')).toBe('split');
    await savePictures(world.page, 'side-by-side');
    const oldest = page.getByRole('row', { name: new RegExp(`^v${first?.version} `) });
    await oldest.getByRole('button', { name: 'Restore' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByText('-theirs').waitFor();
    await dialog.getByRole('button', { name: `Restore version ${first?.version}` }).click();
    await page.getByRole('cell', { name: 'restored' }).waitFor();
    expect(await files.textOf('shared.md')).toBe('one\ntwo\nthree\n');
    expect((await files.historyOf('shared.md')).map(({ type: kind }) => kind)).toEqual([
      ...['restored', 'written', 'written', 'written'],
    ]);
  });

  it('leads from a version to the agent, the session and the turn that wrote it', async () => {
    const { page } = world;
    const turnId = await say('notes', 'write the file notes.md');
    await files.open('notes.md');
    await page.getByRole('cell', { name: /^writer in session/ }).waitFor();
    await page.getByRole('link', { name: `Why turn ${turnId.slice(0, 8)}` }).click();
    await page.getByRole('heading', { level: 1, name: /Why|call/ }).waitFor();
    expect(page.url()).toContain(`/why/${turnId}`);
  });

  it('takes back what a conversation changed, after the list, and leaves newer changes of others', async () => {
    const { page } = world;
    await say('one', 'write the file one.md');
    await files.write('notes.md', 'mine since then\n');
    await files.open('one.md');
    await button('Take back…').click();
    const dialog = page.getByRole('dialog', { name: 'Take back changes of files?' });
    await dialog.getByRole('row', { name: /one\.md.*goes to the bin/ }).waitFor();
    expect(await findViolations(page)).toEqual([]);
    await savePictures(page, 'rewind');
    await dialog.getByRole('button', { name: 'Take back 1 change' }).click();
    await page.getByText('There is no such file now').waitFor();
    expect((await files.historyOf('one.md')).map(({ type: kind }) => kind)).toEqual(['deleted', 'written']);
    // A newer change of another stays, and is named.
    await files.open('notes.md');
    await button('Take back…').click();
    await dialog.getByLabel('Changes').selectOption('all');
    await dialog.getByRole('row', { name: /notes\.md.*keeps a newer change/ }).waitFor();
    const act = dialog.getByRole('button', { name: 'Take back 0 changes' });
    expect(await act.isDisabled()).toBe(true);
    expect(await files.textOf('notes.md')).toBe('mine since then\n');
  });

  it('runs and fetches nothing of a hostile content, and shows a table as cells', async () => {
    const { page, leaks, errors } = world;
    const hostile = '<img src="https://evil.example/a.png" onerror="window.hacked=1">';
    await files.write('evil.csv', `name,value\n"${hostile.replaceAll('"', '""')}","3,6"\n`);
    await files.open('evil.csv');
    await page.getByRole('cell', { name: hostile }).waitFor();
    await page.getByRole('cell', { name: '3,6' }).waitFor();
    expect(await page.evaluate('window.hacked')).toBeUndefined();
    // The console names each refused request, such as that of a file over its quota.
    const failures = errors.filter((text) => !text.startsWith('Failed to load resource'));
    expect({ leaks, failures }).toEqual({ leaks: [], failures: [] });
  });

  it('shows the tree of a position of the log, where nothing can be changed', async () => {
    const { page } = world;
    const [, before] = await files.historyOf('shared.md');
    await files.open('shared.md', `?at=${before?.eventPosition}`);
    await page.getByText('mine', { exact: false }).first().waitFor();
    await page.getByText(`v${before?.version}`, { exact: true }).first().waitFor();
    expect(await button('Edit').getAttribute('aria-disabled')).toBe('true');
    await files.row('shared.md').waitFor();
    expect(await files.row('notes.md').count()).toBe(0);
    await savePictures(world.page, 'past');
  });
});
