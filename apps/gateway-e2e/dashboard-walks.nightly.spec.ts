import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { startMockModel, type MockModel } from '@antiphon/testing/providers';
import type { TestStack } from '@antiphon/testing/stack';
import type { Browser, Page } from 'playwright-core';
import { launchChromium } from './chromium.js';
import { createKeys } from './dashboard-keys.js';
import { startDashboardWorld, type DashboardWorld } from './dashboard-world.js';
import { readEvents, startQuickStack } from './stack-under-test.js';

jest.setTimeout(120_000);

const KEY = 'sk-ant-walk-by-keys';

describe('a newcomer by keys alone', () => {
  let mock: MockModel;
  let stack: TestStack;
  let browser: Browser;
  let page: Page;
  beforeAll(async () => {
    mock = await startMockModel(
      ({ seen }) => ({
        text: [JSON.stringify(seen.body).includes('forty-two') ? 'It ends with forty-two.' : 'No file.'],
      }),
      () => ({ status: 200, body: { data: [{ id: 'claude-sonnet-4-5' }, { id: 'claude-other' }] } }),
    );
    stack = await startQuickStack('[gateway]\nhost = "127.0.0.1"\nport = 0\n');
    browser = await launchChromium();
    page = await browser.newPage({ viewport: { width: 1_440, height: 900 }, baseURL: stack.gatewayUrl });
    page.setDefaultTimeout(10_000);
  });
  afterAll(async () => {
    await browser?.close();
    await stack?.stop();
    await mock?.close();
  });

  it('connects a model, attaches a file, and gets an answer about its last line', async () => {
    const { tabTo, press } = createKeys(() => page);
    const { keyboard } = page;
    await page.goto('/');
    await press(page.getByRole('link', { name: 'Connect a model' }));
    await page.getByLabel('Key').and(page.locator(':focus')).waitFor();
    await keyboard.insertText(KEY);
    const advanced = page.getByLabel('Base URL');
    await tabTo(advanced);
    await keyboard.insertText(mock.url);
    await keyboard.press('Enter');
    await page.getByText(/^works · 2 models · \d+ ms$/).waitFor();
    await press(page.getByRole('button', { name: 'Start chatting' }));
    await page.getByRole('heading', { name: 'New chat' }).waitFor();
    const chooser = page.waitForEvent('filechooser');
    await press(page.getByRole('button', { name: 'Attach', exact: true }));
    const buffer = Buffer.from('first line\nit ends with forty-two\n');
    await (await chooser).setFiles([{ name: 'notes.md', mimeType: 'text/markdown', buffer }]);
    await page.getByText(/^\d+ B · attached$/).waitFor();
    await tabTo(page.getByRole('textbox', { name: 'Message' }));
    await keyboard.type('What is the last line?');
    await keyboard.press('Enter');
    await page.getByRole('feed').getByText('It ends with forty-two.').waitFor();
    await page.getByText(/^\d+ B · read whole · \d+ tokens$/).waitFor();
  });
});

describe('those who look after agents, by keys alone', () => {
  let world: DashboardWorld;
  beforeAll(async () => {
    world = await startDashboardWorld();
    const { page } = world;
    await page.goto('/agents/gpt');
    await page.getByLabel('Message to Gpt').fill('please calculate the clearance at noon');
    await page.getByRole('button', { name: 'Start a conversation' }).click();
    await page.getByRole('button', { name: 'Approve' }).waitFor();
  });
  afterAll(() => world?.stop());

  it('find a word of a conversation, and see why its agent did what it did', async () => {
    const { page } = world;
    const { press } = createKeys(() => page);
    await page.goto('/');
    await page.getByRole('heading', { level: 1 }).waitFor();
    await page.keyboard.press('Control+k');
    await page
      .getByRole('combobox', { name: /^Page, agent/ })
      .and(page.locator(':focus'))
      .waitFor();
    await page.keyboard.type('clearance');
    await page
      .getByRole('option', { name: /clearance at noon/ })
      .first()
      .waitFor();
    await page.keyboard.press('Enter');
    await page.waitForURL(/\/sessions\//);
    await press(page.getByRole('link', { name: 'Why', exact: true }));
    await page.waitForURL(/\/why\//);
    await page.getByRole('heading', { level: 1 }).waitFor();
    await page.getByText('please calculate the clearance at noon').first().waitFor();
  });

  it('see what waits for them, and decide about it', async () => {
    const { page } = world;
    const { press } = createKeys(() => page);
    await page.goto('/');
    await page.getByRole('heading', { level: 1 }).waitFor();
    await page.keyboard.press('g');
    await page.keyboard.press('n');
    await page.getByRole('heading', { level: 1, name: 'Attention' }).waitFor();
    await press(page.getByRole('link', { name: 'Decide' }));
    await press(page.getByRole('button', { name: 'Approve', disabled: false }));
    await page.getByRole('button', { name: 'Approve' }).waitFor({ state: 'detached' });
    const granted = await readEvents(world.stack, { category: 'session' });
    expect(granted.filter(({ type }) => type.startsWith('Approval')).map(({ type }) => type)).toEqual([
      'ApprovalRequested',
      'ApprovalGranted',
    ]);
  });
});
