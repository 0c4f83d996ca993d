import { mkdirSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, it, jest } from '@jest/globals';
import type { MockScript } from '@antiphon/testing/providers';
import { addContent } from './dashboard-content.js';
import { startDashboardWorld, type DashboardWorld } from './dashboard-world.js';
import { readEvents, waitForValue } from './stack-under-test.js';

jest.setTimeout(180_000);

/** `docs/images` writes the pictures of the README again. */
const FOLDER = process.env['ANTIPHON_README_IMAGES'] ?? join(tmpdir(), 'antiphon-readme');
const MAX_BYTES = 150 * 1_024;

const TABLE = `## Tide tables for Harwich

The **next high water** is at \`14:42\`. A table:

| port | high | low |
| --- | --- | --- |
| Harwich | 3.9 m | 0.4 m |
| Dover | 6.7 m | 0.8 m |

1. Leave before noon.
2. Watch the \`bar\` buoy.
`;

const script: MockScript = ({ user, toolResults }) => {
  if (toolResults.length > 0) return { text: ['The clearance is ', `**${toolResults.at(-1)} m**.`] };
  if (user.includes('calculate'))
    return {
      text: ['Let me calculate that.'],
      tools: [{ id: 'call_1', name: 'calculator', input: { expression: '39 - 24' } }],
    };
  return { text: [TABLE] };
};

const SETTINGS = `
[[agents.approvals]]
tool = "calculator"

[budgets]
monthly = 2000000
session_usd = 0.50
daily_usd = 5.00
`;

let world: DashboardWorld;
beforeAll(async () => {
  mkdirSync(FOLDER, { recursive: true });
  world = await startDashboardWorld({ model: script, settings: SETTINGS });
});
afterAll(() => world?.stop());

const button = (name: string) => world.page.getByRole('button', { name, exact: true });
const say = async (agent: string, content: string): Promise<string> => {
  await world.page.goto(`/agents/${agent}`);
  await world.page.getByLabel(/^Message to/).fill(content);
  await button('Start a conversation').click();
  await world.page.waitForURL(/\/sessions\//);
  return new URL(world.page.url()).pathname.split('/').at(-1) ?? '';
};
const waitForEnds = (count: number) =>
  waitForValue('the ends of the turns', async () =>
    (await readEvents(world.stack, { type: 'TurnCompleted' })).length >= count ? true : undefined,
  );
const post = async (path: string, body: object, method = 'POST') => {
  const headers = { 'content-type': 'application/json' };
  const sent = { method, headers, body: JSON.stringify(body) };
  return (await (await fetch(world.stack.gatewayUrl + path, sent)).json()) as Record<string, string>;
};
const take = async (name: string, colorScheme: 'light' | 'dark'): Promise<void> => {
  const path = join(FOLDER, `dashboard-${name}.png`);
  await world.page.emulateMedia({ colorScheme });
  await world.page.waitForTimeout(1_000);
  await world.page.screenshot({ path });
  expect([name, statSync(path).size < MAX_BYTES]).toEqual([name, true]);
};
const node = (id: string, prompt: string, ...needs: string[]) => ({ id, agent: 'claude', prompt, needs });

it('the pictures of the README show a session in the past, a run, money and the overview', async () => {
  const { page, stack } = world;
  await page.setViewportSize({ width: 1_280, height: 800 });
  const id = await say('gpt', 'Tide tables for Harwich, please');
  await waitForEnds(1);
  await page.getByLabel('Message', { exact: true }).fill('please calculate the clearance at noon');
  await page.keyboard.press('Enter');
  await button('Approve').waitFor();
  const [asked] = await readEvents(stack, { type: 'ApprovalRequested' });
  await page.waitForTimeout(700);
  await button('Approve').click();
  await waitForEnds(2);
  await page.goto(`/sessions/${id}?at=${asked?.position}`);
  await page.getByRole('region', { name: 'All arguments of calculator' }).waitFor();
  await take('session-in-the-past', 'light');

  const nodes = [
    node('weather', 'What is the weather?'),
    node('tides', 'What are the tides?'),
    node('route', 'Plan the route.', 'weather', 'tides'),
    node('review', 'Review the plan.', 'route'),
  ];
  const definition = JSON.stringify({ name: 'Passage plan', nodes });
  const saved = await post('/api/v1/workflows', { definition });
  const run = await post(`/api/v1/workflows/${saved['id']}/start`, {});
  await page.goto(`/runs/${run['id']}`);
  await page.getByText('4 of 4 nodes completed').waitFor();
  await take('workflow', 'light');

  await post('/api/v1/budgets/agents/claude', { limitTokens: 100_000, limitMicroUsd: null }, 'PUT');
  await page.goto('/money');
  await page.getByRole('row', { name: /^claude/ }).waitFor();
  await take('money', 'dark');

  const watch = await post('/api/v1/agents', { name: 'Night watch', base: 'gpt', budget: { tokens: 10 } });
  await say(String(watch['id']), 'Watch the harbour tonight');
  await page.locator('[data-turn] [data-state=failed]').waitFor();
  await say('gpt', 'please calculate the draught');
  await button('Approve').waitFor();
  await page.goto('/');
  await page.getByText('all services run').waitFor();
  await take('overview', 'light');
});

it('the pictures of the other pages show a workspace in use', async () => {
  const { page } = world;
  const content = await addContent(world);
  const PAGES: readonly (readonly [string, string])[] = [
    ['agents', '/agents'],
    ['agent', '/agents/claude?tab=metrics'],
    ['attention', '/attention'],
    ['chat', content.chat],
    ['events', '/events'],
    ['files', content.file],
    ['memory', '/memory?agent=claude'],
    ['messages', '/messages'],
    ['metrics', '/performance'],
    ['plan', content.plan],
    ['providers', '/settings/providers'],
    ['sessions', '/sessions'],
    ['settings', '/settings'],
    ['tasks', '/tasks'],
    ['tools', '/tools'],
    ['audit', '/audit'],
  ];
  for (const [name, path] of PAGES) {
    await page.goto(path);
    await page.getByRole('heading', { level: 1 }).first().waitFor();
    const loading = page.locator('main p[aria-busy=true]').filter({ hasNotText: 'a sample' });
    await loading.first().waitFor({ state: 'detached' });
    await take(name, 'light');
  }
});

it('the README and its gallery have each picture, and no other', () => {
  const root = fileURLToPath(new URL('../../', import.meta.url));
  const texts = ['README.md', 'docs/flows/dashboard.md'].map((file) =>
    readFileSync(join(root, file), 'utf8'),
  );
  const shown = new Set(
    texts.flatMap((text) => [...text.matchAll(/images\/(dashboard-[\w-]+\.png)/g)].map(([, name]) => name)),
  );
  expect([...shown].sort()).toEqual(readdirSync(join(root, 'docs/images')).sort());
});
