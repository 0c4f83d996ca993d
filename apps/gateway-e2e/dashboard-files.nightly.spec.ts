import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { checkFigure, measureContention, percentile } from '@antiphon/testing/load';
import { findViolations, savePictures, startDashboardWorld, type DashboardWorld } from './dashboard-world.js';
import { FILE_SETTINGS, FilesOnPage, uploadOf } from './files-on-page.js';
import { createApiCaller, waitForValue } from './stack-under-test.js';

jest.setTimeout(240_000);

const UPLOADS = 200;
const FILES = 10_000;
const BATCH = 100;
/** A slow machine may raise a bound of time by at most this factor. */
const CAP = 3;
const ROUNDS = 5;
/** Contents and names that would run or fetch something in a page that trusts them. */
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
const PNG = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAoAAAAKCAYAAACNMs+9AAAAFUlEQVR42mNk+M9Qz0AEYBxVSF+FABJADveWkH6oAAAAAElFTkSuQmCC',
  'base64',
);
/** Measures each key of the filter until the page is painted. */
const WATCH_KEYS = `window.keys = []; addEventListener('keydown', () => {
  const from = performance.now();
  requestAnimationFrame(() => setTimeout(() => window.keys.push(performance.now() - from)));
}, true)`;

let world: DashboardWorld;
let slowdown = 1;
beforeAll(async () => {
  world = await startDashboardWorld({ settings: FILE_SETTINGS });
  slowdown = Math.min(CAP, await measureContention());
}, 120_000);
afterAll(() => world?.stop());

const files = new FilesOnPage(() => world);
const call = createApiCaller(() => world.stack.gatewayUrl);
const button = (name: string | RegExp) => world.page.getByRole('button', { name, exact: true });

describe('the page of files', () => {
  it('uploads 200 files and stores each one', async () => {
    const { page } = world;
    await page.goto('/files');
    await page.getByText('No files yet').waitFor();
    const chosen = Array.from({ length: UPLOADS }, (_, nth) =>
      uploadOf(`note-${nth}.txt`, `number ${nth}\n`),
    );
    await files.uploads.setInputFiles(chosen);
    const stored = page.getByRole('heading', { name: `${UPLOADS} of ${UPLOADS} uploads stored` });
    await stored.waitFor({ timeout: 60_000 });
    const entries = await files.list('');
    expect(entries.map(({ path }) => path).sort()).toEqual(chosen.map(({ name }) => name).sort());
    expect(await files.textOf('note-137.txt')).toBe('number 137\n');
  });

  it('runs and fetches nothing of hostile names and contents', async () => {
    const { page, leaks, errors } = world;
    for (const [path, body] of Object.entries(HOSTILE)) await files.put(path, body);
    const stored = await files.list('evil');
    expect(stored.length).toBeGreaterThanOrEqual(5);
    for (const { path } of stored) {
      for (const query of ['', '?source=1']) {
        await files.open(path, query);
        await page.locator('.cm-content, table, h2').first().waitFor();
      }
      await files.tree.waitFor();
    }
    await files.open('evil/turn.js');
    await page.locator('.cm-specialChar').nth(1).waitFor();
    // The bytes are data also where a browser opens their address.
    const { headers } = await fetch(files.addressOf('evil/page.html'));
    expect(headers.get('content-disposition')).toBe('attachment');
    expect(headers.get('content-security-policy')).toBe('sandbox');
    expect(await page.evaluate('window.hacked')).toBeUndefined();
    // The console names each refused request.
    const failures = errors.filter((text) => !text.startsWith('Failed to load resource'));
    expect({ leaks, failures }).toEqual({ leaks: [], failures: [] });
  });

  it('shows images, tables and other bytes, and asks before it reads a large file', async () => {
    const { page } = world;
    await page.goto('/files');
    await files.uploads.setInputFiles([
      uploadOf('dot.png', PNG),
      uploadOf('data.bin', Buffer.from([0, 1, 2, 3])),
      uploadOf('tides.csv', 'port,high\nHamburg,"3,6"\n'),
      uploadOf('long.txt', 'a line of text\n'.repeat(90_000)),
    ]);
    await page.getByRole('heading', { name: '4 of 4 uploads stored' }).waitFor();
    await files.open('dot.png');
    await page.getByRole('img', { name: /^Image of/ }).waitFor();
    await page.waitForFunction('document.querySelector("main img").naturalWidth === 10');
    await files.open('data.bin');
    await page.getByText('This file is no text').waitFor();
    await files.open('tides.csv');
    await page.getByRole('cell', { name: '3,6' }).waitFor();
    expect(await findViolations(page)).toEqual([]);
    await files.open('long.txt');
    await button('Read it').click();
    await page.locator('.cm-line').first().waitFor();
    const download = page.waitForEvent('download');
    await button('Download').click();
    expect((await download).suggestedFilename()).toBe('long.txt');
  });

  it('makes, renames and removes folders by buttons', async () => {
    const { page } = world;
    await page.goto('/files');
    await button('New folder').click();
    await page.getByRole('dialog').getByLabel('Path').fill('drafts/old');
    await page.getByRole('dialog').getByRole('button', { name: 'Create' }).click();
    await page.getByRole('heading', { level: 2, name: 'drafts/old: 1 item' }).waitFor();
    await button('Rename or move').click();
    await page.getByLabel('New path').fill('drafts/new');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { level: 2, name: 'drafts/new: 1 item' }).waitFor();
    expect((await files.list('drafts')).map(({ path }) => path)).toEqual(['drafts/new']);
    await button('To the bin').click();
    await page.getByText('a folder with 1 file').waitFor();
    await page.getByRole('dialog').getByRole('button', { name: 'Move to the bin' }).click();
    await waitForValue('no such folder', async () => {
      const entries = await files.list('');
      return entries.some(({ path }) => path === 'drafts') ? undefined : true;
    });
  });

  it('shows and edits a role by a form and as its text', async () => {
    const { page } = world;
    const path = 'system/agents/critic.md';
    await files.write(path, '---\nname: Critic\nmodel: gpt-4o\n---\n\nBe kind.\n');
    await files.open(path);
    await page.getByText('those of its base').waitFor();
    await button('Edit').click();
    await page.getByLabel('Tools').fill('read, search');
    await page.getByLabel('Prompt').fill('Be strict.\n');
    await savePictures(page, 'role-form');
    expect(await findViolations(page)).toEqual([]);
    await button('Raw text').click();
    await files.editor.getByText('tools: [read, search]').waitFor();
    await button('Raw text').click();
    await page.getByLabel('Description').fill('Finds: what is wrong');
    await button('Save').click();
    await page.getByText('Finds: what is wrong').waitFor();
    expect(await files.textOf(path)).toBe(
      '---\nname: Critic\ndescription: "Finds: what is wrong"\nmodel: gpt-4o\ntools: [read, search]\n---\n\nBe strict.\n',
    );
    await savePictures(page, 'role');
    // A form that cannot show all of a file does not edit it.
    await files.write(path, '---\nthinking: high\n---\n\nBe strict.\n');
    await files.open(path, '?edit=1');
    await page.getByText('The form has no field for “thinking: high”').waitFor();
    await files.editor.getByText('thinking: high').waitFor();
  });
});

describe('a folder of 10,000 files', () => {
  const nameOf = (nth: number): string => `many/file-${String(nth).padStart(5, '0')}.txt`;
  /** Stores the files with the bytes of one, in few requests. */
  const fill = async (): Promise<void> => {
    const body = 'the bytes of all files\n';
    await files.write(nameOf(0), body);
    const bytes = { digest: createHash('sha256').update(body).digest('hex'), size: body.length };
    for (let from = 1; from < FILES; from += BATCH) {
      const count = Math.min(BATCH, FILES - from);
      const changes = Array.from({ length: count }, (_, n) => ({
        ...{ op: 'write', path: nameOf(from + n), ...bytes },
      }));
      const { status, body: answer } = await call('', 'POST', '/workspaces/default/file-changes', {
        changes,
      });
      expect([status, answer]).toEqual([200, expect.anything()]);
    }
  };
  const rowsInPage = () => world.page.locator('main [role=treeitem], main tbody tr').count();
  beforeAll(fill, 240_000);

  it('shows its first rows within 500 ms, and at most 100 rows are in the page', async () => {
    const { page } = world;
    const times: number[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      // The page is open, so that the load of its scripts is not measured.
      await page.goto('/files');
      await files.row('many').waitFor();
      const startedAt = performance.now();
      await files.row('many').click();
      await files.row('file-00000.txt').waitFor();
      await page.getByRole('heading', { name: 'many: 10,000 items' }).waitFor();
      times.push(performance.now() - startedAt);
    }
    checkFigure({
      ...{ what: 'first rows of a folder of 10,000 files', value: Math.min(...times), unit: 'ms' },
      atMost: 500 * slowdown,
    });
    expect(await rowsInPage()).toBeLessThanOrEqual(100);
    const first = files.row('file-00000.txt');
    expect(await first.getAttribute('aria-setsize')).toBe(String(FILES));
    // The end of what is read says how many are left out, and its rows take the place of the first.
    await files.tree.evaluate((tree) => tree.scrollTo({ top: 28 * 990, behavior: 'instant' }));
    await files.row('Show more: 9,000 items left out').waitFor();
    expect(await rowsInPage()).toBeLessThanOrEqual(100);
    expect(await first.count()).toBe(0);
  });

  it('paints each key of the filter within 50 ms, and finds a file by its name', async () => {
    const { page } = world;
    await page.goto('/files');
    await files.row('many').click();
    await files.row('file-00000.txt').waitFor();
    await page.evaluate(WATCH_KEYS);
    const field = page.getByLabel('Find files by a part of their path');
    await field.focus();
    for (const key of 'file-0987') await field.press(key);
    await page.waitForFunction('window.keys.length === 9');
    const keys = (await page.evaluate('window.keys')) as number[];
    checkFigure({
      ...{ what: 'a key of the filter of 10,000 files to paint (p95)', value: percentile(keys, 0.95) },
      ...{ unit: 'ms', atMost: 50 * slowdown },
    });
    await files.row('many/file-09870.txt').waitFor();
    await files.row('many/file-09879.txt').waitFor();
    expect(await files.tree.getByRole('treeitem').count()).toBe(10);
    expect(await rowsInPage()).toBeLessThanOrEqual(100);
  });
});
