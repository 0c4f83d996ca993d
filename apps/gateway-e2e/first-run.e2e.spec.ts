import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startMockModel, type MockModel } from '@antiphon/testing/providers';
import type { TestStack } from '@antiphon/testing/stack';
import type { Browser, Page } from 'playwright-core';
import { dropFiles } from './chat-browser.js';
import { launchChromium } from './chromium.js';
import { findViolations, readApi } from './dashboard-world.js';
import { readEvents, runCli, startQuickStack, waitForRoot, waitForValue } from './stack-under-test.js';

jest.setTimeout(120_000);

const KEY = 'sk-ant-CANARY-3c1f9b52-first-run';
const WRONG_KEY = 'sk-ant-CANARY-wrong-0d7e';
const BUSY_KEY = 'sk-ant-CANARY-busy-5b1a';
const SECOND_KEY = 'sk-CANARY-second-77aa';
const STATUS: Readonly<Record<string, number>> = { [KEY]: 200, [SECOND_KEY]: 200, [BUSY_KEY]: 429 };

const MODELS = { data: [{ id: 'claude-sonnet-4-5' }, { id: 'claude-other' }] };
/** Returns the last line of the attached file in a prompt, as a model reads it. */
const lastLineOf = (body: unknown): string =>
  /notes\.md[^]*?\\n(lines end with [\w-]+)/.exec(JSON.stringify(body))?.[1] ?? 'not attached';
const NOTES = `first line\n${'more\n'.repeat(20)}lines end with forty-two`;

const keyOf = ({ authorization = '' }: { readonly authorization?: string | undefined }): string =>
  authorization.replace('Bearer ', '');

let mock: MockModel;
let stack: TestStack;
let browser: Browser;
let page: Page;
let folder: string;
const addresses: string[] = [];

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'antiphon-first-run-'));
  mock = await startMockModel(
    ({ seen }) =>
      STATUS[keyOf(seen.headers)] === 200
        ? { text: ['The last line is ', `**${lastLineOf(seen.body)}**.`] }
        : { status: 401, body: { error: { type: 'authentication_error', message: 'invalid x-api-key' } } },
    ({ headers }) => {
      const status = STATUS[keyOf(headers)] ?? 401;
      return { status, body: status === 200 ? MODELS : { error: { message: `refused ${keyOf(headers)}` } } };
    },
  );
  stack = await startQuickStack('[gateway]\nhost = "127.0.0.1"\nport = 0\n', { agent: 2 });
  browser = await launchChromium();
  page = await browser.newPage({ viewport: { width: 1_440, height: 900 }, baseURL: stack.gatewayUrl });
  page.setDefaultTimeout(10_000);
  page.on('request', (request) => addresses.push(request.url()));
});
afterAll(async () => {
  await browser?.close();
  await stack?.stop();
  await mock?.close();
  rmSync(folder, { recursive: true, force: true });
});

const button = (name: string) => page.getByRole('button', { name, exact: true });
const link = (name: string) => page.getByRole('link', { name, exact: true });
const eventsOf = (category: string) => readEvents(stack, { category });
const cli = (...args: string[]) => runCli(stack, args);
const keyFile = (key: string): string => {
  const path = join(folder, 'key');
  writeFileSync(path, key);
  return path;
};
/** Returns the texts of all log files of the stack. */
const logTexts = (path: string): string[] =>
  readdirSync(path).flatMap((name) => {
    const file = join(path, name);
    if (statSync(file).isDirectory()) return logTexts(file);
    return name.endsWith('.log') ? [readFileSync(file, 'utf8')] : [];
  });

/** Expects that no key is in the page, its storage and addresses, events, views and log files. */
const expectNoKey = async (): Promise<void> => {
  const stored = await page.evaluate(
    `(async () => JSON.stringify([localStorage, sessionStorage, await caches.keys(), await indexedDB.databases()]) +
      document.documentElement.outerHTML)()`,
  );
  const events = JSON.stringify(await readEvents(stack));
  const views = JSON.stringify([
    await readApi({ stack }, '/api/v1/providers'),
    await readApi({ stack }, '/api/v1/providers/anthropic/models'),
    await readApi({ stack }, '/api/v1/credentials'),
    await readApi({ stack }, '/api/v1/health'),
  ]);
  for (const text of [stored, events, views, ...addresses, ...logTexts(stack.home)])
    expect(String(text).includes('CANARY')).toBe(false);
};

describe('the first run in Chromium', () => {
  it('goes from an empty installation to an answer about a file in 15 s and four clicks', async () => {
    const startedAt = performance.now();
    let clicks = 0;
    const click = async (target: ReturnType<typeof button>): Promise<void> => {
      clicks += 1;
      await target.click();
    };
    await page.goto('/');
    await click(link('Connect a model'));
    await page.getByLabel('Key').fill(WRONG_KEY);
    await page.getByLabel('Base URL').fill(mock.url);
    // Enter submits each form, as a person with a key in the hand does.
    await page.keyboard.press('Enter');
    await page.getByText('wrong key (401)').waitFor();
    expect(await page.getByLabel('Kind').inputValue()).toBe('anthropic');
    await page.getByLabel('Key').fill(BUSY_KEY);
    await page.keyboard.press('Enter');
    await page.getByText('busy (429)').waitFor();
    await page.getByLabel('Key').fill(KEY);
    await click(button('Test'));
    await page.getByText(/^works · 2 models · \d+ ms$/).waitFor();
    expect(await page.getByLabel('Model', { exact: true }).inputValue()).toBe('claude-sonnet-4-5');
    await click(button('Start chatting'));
    await page.getByRole('heading', { name: 'New chat' }).waitFor();
    await dropFiles(page, [{ name: 'notes.md', text: NOTES }]);
    await page.getByText(/^\d+ B · attached$/).waitFor();
    await page.getByRole('textbox', { name: 'Message' }).fill('What is the last line?');
    await page.keyboard.press('Enter');
    const feed = page.getByRole('feed');
    await feed.getByText('The last line is lines end with forty-two.', { exact: true }).waitFor();
    await page.getByText(/^\d+ B · read whole · \d+ tokens$/).waitFor();
    const seconds = (performance.now() - startedAt) / 1_000;
    expect(clicks).toBeLessThanOrEqual(4);
    expect(seconds).toBeLessThanOrEqual(15);
  });

  it('leaves the key in no address, event, page, storage or log', async () => {
    await expectNoKey();
  });

  it('no longer offers to connect a model, and shows the provider with its agents and their cost', async () => {
    await page.goto('/');
    await page.getByRole('heading', { name: 'Latest events' }).waitFor();
    await page.getByText('all services run').waitFor();
    expect(await link('Connect a model').count()).toBe(0);
    expect(await readApi({ stack }, '/api/v1/health')).toMatchObject({
      provider: { name: 'anthropic', kind: 'anthropic', model: 'claude-sonnet-4-5' },
    });
    await page.goto('/settings/providers');
    const row = page.getByRole('row', { name: /^anthropic/ });
    await row.getByText('stored encrypted').waitFor();
    await row.getByText('main claude-sonnet-4-5').waitFor();
    const { groups } = (await readApi({ stack }, '/api/v1/usage?by=model')) as {
      groups: { name: string; settledMicroUsd: number }[];
    };
    const cost = groups.find(({ name }) => name === 'anthropic/claude-sonnet-4-5')?.settledMicroUsd ?? 0;
    expect(cost).toBeGreaterThan(0);
    await row.getByText(`$${(cost / 1_000_000).toFixed(4)}`).waitFor();
    expect(await findViolations(page)).toEqual([]);
    await page.goto('/settings/providers?connect=1');
    await page.getByRole('dialog').getByRole('button', { name: 'Test' }).waitFor();
    expect(await findViolations(page)).toEqual([]);
  });

  it('changes a field of an agent, and resets it', async () => {
    await page.goto('/agents/main?tab=definition');
    await button('Change').click();
    await page.getByLabel('Capabilities').fill('research, writing');
    expect(await findViolations(page)).toEqual([]);
    await button('Save').click();
    await page.getByText('writing', { exact: true }).waitFor();
    expect(await readApi({ stack }, '/api/v1/agents/main')).toMatchObject({
      ...{ capabilities: ['research', 'writing'], provider: 'anthropic' },
      overrides: ['capabilities', 'model', 'provider'],
    });
    expect((await cli('agent', 'set', 'main', '--reset', 'capabilities')).code).toBe(0);
    expect(await readApi({ stack }, '/api/v1/agents/main')).toMatchObject({ capabilities: [] });
  });
});

describe('antiphon provider', () => {
  it('adds a provider after a test, lists its models, and removes it', async () => {
    const base = ['--base-url', `${mock.url}/v1`, '--name', 'second'];
    const refused = await cli('provider', 'add', 'openai', ...base, '--file', keyFile(WRONG_KEY));
    expect(refused.code).toBe(1);
    expect(refused.stderr).toContain('wrong_key');
    const added = await cli('provider', 'add', 'openai', ...base, '--file', keyFile(SECOND_KEY));
    expect([added.code, added.stderr]).toEqual([0, expect.stringContaining('works')]);
    expect((await cli('provider', 'list')).stdout).toMatch(/second +openai +connected +key stored +ready/);
    expect((await cli('provider', 'models', 'second')).stdout).toContain('claude-other');
    const tested = await cli('provider', 'test', 'second', '--json');
    expect(JSON.parse(tested.stdout)).toMatchObject({ works: true });
    expect((await cli('agent', 'set', 'main', '--provider', 'second')).code).toBe(1);
    const set = await cli('agent', 'set', 'main', '--provider', 'second', '--model', 'claude-other');
    expect(set.code).toBe(0);
    const removed = await cli('provider', 'remove', 'second');
    expect(removed.stdout).toContain('agents without a provider: main');
    for (const { stdout, stderr } of [refused, added, tested, set, removed])
      expect(`${stdout}${stderr}`).not.toContain('CANARY');
  });

  it('leaves an agent whose turns fail with the reason, and which another provider helps', async () => {
    const turn = await cli('chat', '--agent', 'main', 'hello');
    expect(turn.code).toBe(1);
    expect(`${turn.stdout}${turn.stderr}`).toContain('no provider is named "second"');
    await cli('agent', 'set', 'main', '--provider', 'anthropic', '--model', 'claude-sonnet-4-5');
    const answer = await waitForValue('an answer', async () => {
      const { code, stdout } = await cli('chat', '--agent', 'main', 'hello');
      return code === 0 ? stdout : undefined;
    });
    expect(answer).toContain('The last line is');
  });

  it('leaves facts that the audit proves', async () => {
    expect((await eventsOf('provider')).map(({ type, data }) => [type, data['name']])).toEqual([
      ['ProviderConnected', 'anthropic'],
      ['ProviderConnected', 'second'],
      ['ProviderRemoved', 'second'],
    ]);
    await waitForRoot(stack);
    const audit = await cli('audit');
    expect([audit.code, audit.stdout]).toEqual([0, expect.stringContaining('events-match-contracts')]);
  });
});

describe('a key of the other format', () => {
  it('is connected in the browser as well, and its model answers about the last line of a file', async () => {
    await page.goto('/settings/providers?connect=1');
    await page.getByLabel('Kind').selectOption('openai');
    await page.getByLabel('Base URL').fill(`${mock.url}/v1`);
    for (const [key, says] of [
      [WRONG_KEY, 'wrong key (401)'],
      [BUSY_KEY, 'busy (429)'],
    ] as const) {
      await page.getByLabel('Key').fill(key);
      await page.keyboard.press('Enter');
      await page.getByText(says).waitFor();
    }
    await page.getByLabel('Key').fill(SECOND_KEY);
    await page.keyboard.press('Enter');
    await page.getByText(/^works · 2 models/).waitFor();
    await page.getByLabel('Model', { exact: true }).fill('claude-other');
    await button('Start chatting').click();
    await page.getByRole('heading', { name: 'New chat' }).waitFor();
    await dropFiles(page, [{ name: 'other notes.md', text: NOTES }]);
    await page.getByText(/^\d+ B · attached$/).waitFor();
    await page.getByRole('textbox', { name: 'Message' }).fill('What is the last line?');
    await page.keyboard.press('Enter');
    const answer = 'The last line is lines end with forty-two.';
    await page.getByRole('feed').getByText(answer, { exact: true }).waitFor();
    expect(mock.calls.at(-1)?.format).toBe('openai');
    await expectNoKey();
  });
});
