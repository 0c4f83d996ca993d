import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import {
  findViolations,
  readApi,
  savePictures,
  startDashboardWorld,
  type DashboardWorld,
} from './dashboard-world.js';
import { readEvents, waitForValue } from './stack-under-test.js';

jest.setTimeout(60_000);

const MOST_BYTES = 1_500_000;
const SETTINGS = `
[files]
max_file_bytes = ${MOST_BYTES}

[[agents]]
id = "writer"
workspace = "*"
name = "Writer"
provider = "openai"
model = "gpt-4o"
tools = ["write"]
`;
/** Contents that would run or fetch something in a page that trusts them. */
const HOSTILE: Readonly<Record<string, string>> = {
  'evil/page.html':
    '<script>window.hacked=1</script><img src="https://evil.example/a.png" onerror="window.hacked=2">',
  'evil/draw.svg':
    '<svg xmlns="http://www.w3.org/2000/svg" onload="window.hacked=3"><image href="https://evil.example/b.png"/></svg>',
  'evil/read.md':
    '![x](https://evil.example/c.png) <img src=x onerror="window.hacked=4"> [y](javascript:window.hacked=5)',
  'evil/rows.csv': 'name,value\n"<img src=x onerror=window.hacked=6>",=HYPERLINK("https://evil.example")\n',
  'evil/turn.js': 'const user = "admin\u202e\u2066"; // \u2069\n',
  "evil/'onmouseover='window.hacked=7' x='.txt": 'a name of attributes\n',
  'evil/${window.hacked=8}&lt;b&gt;.txt': 'a name of a template\n',
};

interface Entry {
  readonly path: string;
  readonly digest: string | null;
  readonly changedBy: string | null;
}
interface Change {
  readonly version: number;
  readonly type: string;
  readonly digest: string | null;
}

let world: DashboardWorld;
beforeAll(async () => {
  world = await startDashboardWorld({ settings: SETTINGS });
}, 120_000);
afterAll(() => world?.stop());

const FILES = '/api/v1/workspaces/default/files';
const put = (path: string, body: string, query = '') =>
  fetch(`${world.stack.gatewayUrl}${FILES}/${path.split('/').map(encodeURIComponent).join('/')}${query}`, {
    method: 'PUT',
    headers: { 'content-type': 'application/octet-stream' },
    body,
  });
const write = async (path: string, body: string): Promise<void> => {
  const response = await put(path, body);
  if (!response.ok) throw new Error(`PUT ${path}: ${response.status} ${await response.text()}`);
};
const list = async (path: string) =>
  (await readApi<{ entries: Entry[]; total: number }>(world, `${FILES}?path=${path}&limit=1000`)).entries;
const textOf = async (path: string) => (await fetch(`${world.stack.gatewayUrl}${FILES}/${path}`)).text();
const historyOf = async (path: string) =>
  (await readApi<{ changes: Change[] }>(world, `/api/v1/workspaces/default/file-history?path=${path}`))
    .changes;

const button = (name: string | RegExp) => world.page.getByRole('button', { name, exact: true });
const tree = () => world.page.getByRole('tree', { name: 'Files' });
const row = (name: string | RegExp) => tree().getByRole('treeitem', { name });
const editor = () => world.page.getByRole('textbox', { name: /^Text of/ });
const open = async (path: string, query = ''): Promise<void> => {
  await world.page.goto(`/files/${path.split('/').map(encodeURIComponent).join('/')}${query}`);
  await world.page.getByRole('heading', { level: 2, name: path, exact: true }).waitFor();
};
/** Replaces the text of the editor, as a person types it. */
const type = async (text: string): Promise<void> => {
  await editor().click();
  await world.page.keyboard.press('Control+a');
  await world.page.keyboard.insertText(text);
};

describe('the page of files in Chromium', () => {
  it('uploads 200 files, each with its state, and names the one that the quota refuses', async () => {
    const { page } = world;
    await page.goto('/files');
    await page.getByText('No files yet').waitFor();
    expect(await findViolations(page)).toEqual([]);
    const file = (name: string, body: string) => ({
      name,
      mimeType: 'text/plain',
      buffer: Buffer.from(body),
    });
    const files = Array.from({ length: 200 }, (_, nth) => file(`note-${nth}.txt`, `number ${nth}\n`));
    const field = page.getByLabel('Files to upload');
    await field.setInputFiles([...files, file('large.bin', 'x'.repeat(MOST_BYTES + 1))]);
    await page.getByRole('heading', { name: '200 of 201 uploads stored, 1 failed' }).waitFor();
    await page.getByText(/large\.bin.*1500001 bytes/).waitFor();
    const entries = await list('');
    expect(entries.map(({ path }) => path).sort()).toEqual(files.map(({ name }) => name).sort());
    expect(await textOf('note-137.txt')).toBe('number 137\n');
    await row('note-0.txt').waitFor();
    await savePictures(world.page, 'uploads');
    // A name in use is asked about once, and a replacement is a version.
    await field.setInputFiles([file('note-1.txt', 'replaced\n'), file('note-2.txt', 'replaced\n')]);
    await page.getByText('2 files have names that are in use.').waitFor();
    await button('Replace').click();
    await page.getByRole('heading', { name: /^2 of \d+ uploads stored/ }).waitFor();
    expect((await historyOf('note-1.txt')).map((change) => change.type)).toEqual(['written', 'written']);
  });

  it('renames, bins and restores by keys, and finds by name', async () => {
    const { page } = world;
    await write('src/lib/deep.ts', 'export const one = 1;\n');
    await page.goto('/files');
    await row('src').waitFor();
    await tree().focus();
    await page.keyboard.type('src');
    await page.keyboard.press('ArrowRight');
    await row('lib').waitFor();
    await page.keyboard.press('ArrowRight');
    await page.keyboard.press('ArrowRight');
    await row('deep.ts').waitFor();
    await page.keyboard.press('ArrowRight');
    await page.keyboard.press('F2');
    await page.getByLabel('New path').fill('src/lib/renamed.ts');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { level: 2, name: 'src/lib/renamed.ts' }).waitFor();
    expect((await list('src/lib')).map(({ path }) => path)).toEqual(['src/lib/renamed.ts']);
    await row('renamed.ts').waitFor();
    await tree().focus();
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
    await row('src/lib/renamed.ts').waitFor();
    expect(await tree().getByRole('treeitem').count()).toBe(1);
  });

  it('loses no edit when another writer is faster, and offers three ways to continue', async () => {
    const { page } = world;
    await write('shared.md', 'one\ntwo\nthree\n');
    await open('shared.md', '?edit=1');
    await type('one\ntwo\nmine\n');
    await write('shared.md', 'one\ntwo\ntheirs\n');
    await page.getByText(/was stored meanwhile/).waitFor();
    await button('Save').click();
    const dialog = page.getByRole('dialog');
    await dialog.getByText('+theirs').waitFor();
    // The same difference as the refusal of the API has.
    const first = (await historyOf('shared.md')).at(-1);
    const refusal = (await (await put('shared.md', 'x', `?expect=${first?.digest}`)).json()) as {
      readonly data: { readonly diff: string };
    };
    const shown = await dialog.getByRole('region', { name: 'Changes since you began' }).innerText();
    expect(shown.replaceAll(/\n+/g, '\n').trim()).toBe(refusal.data.diff);
    expect(await findViolations(page)).toEqual([]);
    await dialog.getByRole('button', { name: 'Merge by hand' }).click();
    const merged = page.getByRole('textbox', { name: 'Text that you save' });
    await merged.click();
    await page.keyboard.press('Control+a');
    await page.keyboard.insertText('one\ntwo\ntheirs\nmine\n');
    await savePictures(world.page, 'merge');
    await button('Save').click();
    await page.getByText('theirs', { exact: false }).first().waitFor();
    await waitForValue('the merge', async () => (await textOf('shared.md')).includes('mine') || undefined);
    expect(await textOf('shared.md')).toBe('one\ntwo\ntheirs\nmine\n');
    // Every version stays, and nothing else was written.
    expect((await historyOf('shared.md')).map(({ type: kind }) => kind)).toEqual([
      'written',
      'written',
      'written',
    ]);
  });

  it('asks before a changed text is left, and saves none', async () => {
    const { page } = world;
    await open('shared.md', '?edit=1');
    await type('never saved');
    await page.getByRole('link', { name: 'Agents' }).click();
    const dialog = page.getByRole('dialog', { name: 'Leave without saving?' });
    await dialog.getByRole('button', { name: 'Stay' }).click();
    expect(await editor().innerText()).toContain('never saved');
    await page.getByRole('link', { name: 'Agents' }).click();
    await dialog.getByRole('button', { name: 'Leave without saving' }).click();
    await page.getByRole('heading', { level: 1, name: 'Agents' }).waitFor();
    expect(await textOf('shared.md')).toBe('one\ntwo\ntheirs\nmine\n');
  });

  it('compares any two versions, and restores one as a new version', async () => {
    const { page } = world;
    const [newest, , first] = await historyOf('shared.md');
    await open('shared.md', `?from=${first?.version}&v=${newest?.version}`);
    const region = page.getByRole('region', { name: /^Changes from version/ });
    await region.waitFor();
    expect((await region.innerText()).replaceAll(/\n+/g, '\n').trim()).toBe(
      '@@ -1,3 +1,4 @@\n one\n two\n-three\n+theirs\n+mine',
    );
    expect(await findViolations(page)).toEqual([]);
    await savePictures(world.page, 'versions');
    const oldest = page.getByRole('row', { name: new RegExp(`^v${first?.version} `) });
    await oldest.getByRole('button', { name: 'Restore' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByText('-theirs').waitFor();
    await dialog.getByRole('button', { name: `Restore version ${first?.version}` }).click();
    await page.getByRole('cell', { name: 'restored' }).waitFor();
    expect(await textOf('shared.md')).toBe('one\ntwo\nthree\n');
    expect((await historyOf('shared.md')).map(({ type: kind }) => kind)).toEqual([
      ...['restored', 'written', 'written', 'written'],
    ]);
  });

  it('leads from a version to the agent, the session and the turn that wrote it', async () => {
    const { page } = world;
    await page.goto('/agents/writer');
    await page.getByLabel('Message to Writer').fill('please write the file');
    await button('Start a conversation').click();
    const turnId = await waitForValue('the file', async () => {
      const facts = await readEvents(world.stack, { type: 'FileWritten' });
      const fact = facts.find(({ data }) => data['path'] === 'notes.md');
      return (fact?.data['cause'] as { turnId?: string } | undefined)?.turnId;
    });
    await open('notes.md');
    await page.getByRole('cell', { name: /^writer in session/ }).waitFor();
    await page.getByRole('link', { name: `Why turn ${turnId.slice(0, 8)}` }).click();
    await page.getByRole('heading', { level: 1, name: /Why|call/ }).waitFor();
    expect(page.url()).toContain(`/why/${turnId}`);
  });

  it('runs and fetches nothing of hostile names and contents', async () => {
    const { page, leaks, errors } = world;
    for (const [path, body] of Object.entries(HOSTILE)) await put(path, body);
    const stored = await list('evil');
    expect(stored.length).toBeGreaterThanOrEqual(5);
    for (const { path } of stored) {
      for (const query of ['', '?source=1']) {
        await open(path, query);
        await page.locator('.cm-content, table, h2').first().waitFor();
      }
      await tree().waitFor();
    }
    await open('evil/turn.js');
    await page.locator('.cm-specialChar').nth(1).waitFor();
    // The bytes are data also where a browser opens their address.
    const { headers } = await fetch(`${world.stack.gatewayUrl}${FILES}/evil/page.html`);
    expect(headers.get('content-disposition')).toBe('attachment');
    expect(headers.get('content-security-policy')).toBe('sandbox');
    expect(await page.evaluate('window.hacked')).toBeUndefined();
    // The console names each refused request, such as that of a file over its quota.
    const failures = errors.filter((text) => !text.startsWith('Failed to load resource'));
    expect({ leaks, failures }).toEqual({ leaks: [], failures: [] });
  });

  it('shows images, tables and other bytes, and asks before it reads a large file', async () => {
    const { page } = world;
    const png = Buffer.from(
      'iVBORw0KGgoAAAANSUhEUgAAAAoAAAAKCAYAAACNMs+9AAAAFUlEQVR42mNk+M9Qz0AEYBxVSF+FABJADveWkH6oAAAAAElFTkSuQmCC',
      'base64',
    );
    const field = page.getByLabel('Files to upload');
    await page.goto('/files');
    const file = (name: string, buffer: Buffer) => ({ name, mimeType: 'application/octet-stream', buffer });
    await field.setInputFiles([
      file('dot.png', png),
      file('data.bin', Buffer.from([0, 1, 2, 3])),
      file('tides.csv', Buffer.from('port,high\nHamburg,"3,6"\n')),
      file('long.txt', Buffer.from('a line of text\n'.repeat(90_000))),
    ]);
    await page.getByRole('heading', { name: '4 of 4 uploads stored' }).waitFor();
    await open('dot.png');
    await page.getByRole('img', { name: /^Image of/ }).waitFor();
    const isDrawn = 'document.querySelector("main img").naturalWidth === 10';
    await page.waitForFunction(isDrawn);
    await open('data.bin');
    await page.getByText('This file is no text').waitFor();
    await open('tides.csv');
    await page.getByRole('cell', { name: '3,6' }).waitFor();
    expect(await findViolations(page)).toEqual([]);
    await open('long.txt');
    await button('Read it').click();
    await page.locator('.cm-line').first().waitFor();
    const download = page.waitForEvent('download');
    await button('Download').click();
    expect((await download).suggestedFilename()).toBe('long.txt');
  });

  it('shows the tree of a position of the log, where nothing can be changed', async () => {
    const { page } = world;
    const [, before] = (await historyOf('shared.md')) as (Change & { eventPosition: number })[];
    await open('shared.md', `?at=${before?.eventPosition}`);
    await page.getByText('mine', { exact: false }).first().waitFor();
    await page.getByText(`v${before?.version}`, { exact: true }).first().waitFor();
    expect(await button('Edit').getAttribute('aria-disabled')).toBe('true');
    await row('shared.md').waitFor();
    expect(await row('notes.md').count()).toBe(0);
    expect(await findViolations(page)).toEqual([]);
    await savePictures(world.page, 'past');
  });
});
