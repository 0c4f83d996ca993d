import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import type { AgentMetrics, AgentView, RunView } from '@antiphon/contracts/agent';
import type { AgentMetricsReply } from '@antiphon/contracts/gateway';
import type { MockScript } from '@antiphon/testing/providers';
import type { Page } from 'playwright-core';
import { findViolations, readApi, startDashboardWorld, type DashboardWorld } from './dashboard-world.js';
import { createApiCaller, waitForValue } from './stack-under-test.js';

jest.setTimeout(90_000);

const speaking = Promise.withResolvers<void>();
const running = Promise.withResolvers<void>();

/** Speaks, runs and fails as the message asks. */
const model: MockScript = ({ user, toolResults }) => {
  if (user.includes('fail')) return { status: 400, body: { error: { message: 'no such thing' } } };
  if (user.includes('speak'))
    return {
      reply: { text: ['One ', 'two.'] },
      before: (piece) => (piece.includes('two') ? speaking.promise : undefined),
    };
  if (user.includes('hold')) return { reply: { text: ['held'] }, before: () => running.promise };
  if (user.includes('calculate') && toolResults.length === 0)
    return { tools: [{ id: 'call_1', name: 'calculator', input: { expression: '40 + 2' } }] };
  return { text: ['well'] };
};

let world: DashboardWorld;
/** A second tab, which shows the overview all the time, and its reads of metrics. */
let watcher: Page;
let [metricsReads, readsBefore] = [0, 0];
const call = createApiCaller(() => world.stack.gatewayUrl);
/** Ids of the agents that the browser has spawned, by their names. */
const ids: Record<string, string> = { Claude: 'claude' };
beforeAll(async () => {
  world = await startDashboardWorld({ model });
  for (const spec of AGENTS) ids[spec.name] = await spawn(spec);
  watcher = await watchOverview();
  readsBefore = metricsReads;
  await say('Critic', 'hello');
}, 120_000);
afterAll(async () => {
  speaking.resolve();
  running.resolve();
  await world?.stop();
});

const AGENTS = [
  { name: 'Researcher', role: 'research', model: 'gpt-4o', capabilities: 'research, english, tides, maps' },
  { name: 'Writer', role: 'writing', model: 'gpt-4o', capabilities: 'writing' },
  { name: 'Critic', role: 'critique', model: 'gpt-4o-mini', capabilities: '' },
] as const;

const button = (name: string | RegExp) => world.page.getByRole('button', { name, exact: true });
const card = (name: string) => world.page.locator(`[data-agent="${ids[name]}"]`);
const agentOf = (name: string) => readApi<AgentView>(world, `/api/v1/agents/${ids[name]}`);

/** Spawns an agent by the dialog. Returns its id. */
const spawn = async ({ name, role, model, capabilities }: (typeof AGENTS)[number]): Promise<string> => {
  const { page } = world;
  await page.goto('/agents?spawn=1');
  const dialog = page.getByRole('dialog', { name: 'Spawn an agent' });
  await dialog.getByLabel('Name').fill(name);
  await dialog.getByLabel('Base').selectOption('gpt');
  await dialog.getByLabel('Role').fill(role);
  await dialog.getByLabel('Provider').selectOption('openai');
  await dialog.getByLabel('Model').fill(model);
  await dialog.getByLabel('Tools').fill('calculator, echo');
  await dialog.getByLabel('Capabilities').fill(capabilities);
  await dialog.getByLabel('Project').fill('harbour');
  await dialog.getByLabel('Budget in tokens').fill('50000');
  await dialog.getByRole('button', { name: 'Spawn', exact: true }).click();
  await page.getByRole('heading', { level: 1, name }).waitFor();
  return decodeURIComponent(new URL(page.url()).pathname.split('/')[2] ?? '');
};
/** Sends a message in a new session of an agent. */
const say = async (name: string, content: string): Promise<void> => {
  const created = await call<{ id: string }>('', 'POST', '/workspaces/default/chats', {
    name: `${name} ${content}`,
    agent: ids[name],
  });
  const path = `/workspaces/default/chats/${created.body.id}`;
  expect((await call('', 'POST', path, { command: 'message', content })).status).toBeLessThan(300);
};

/** Opens a second tab that counts its reads of metrics. */
const watchOverview = async (): Promise<Page> => {
  const page = await world.browser.newPage({ baseURL: world.stack.gatewayUrl });
  page.on('request', (request) => {
    metricsReads += Number(new URL(request.url()).pathname === '/api/v1/agent-metrics');
  });
  await page.goto('/');
  await page.locator(`[data-agent="${ids['Critic']}"]`).getByText('no sample yet').waitFor();
  await page.waitForLoadState('networkidle');
  return page;
};

describe('the cards of agents', () => {
  it('show what three spawned agents are, and that none has a sample yet', async () => {
    const { page } = world;
    await page.goto('/');
    expect(await agentOf('Researcher')).toMatchObject({
      ...{ role: 'research', provider: 'openai', model: 'gpt-4o', project: 'harbour' },
      ...{ tools: ['calculator', 'echo'], capabilities: ['research', 'english', 'tides', 'maps'] },
      budget: { tokens: 50_000, microUsd: null },
    });
    for (const { name, model } of AGENTS) {
      await card(name).getByText(model, { exact: true }).waitFor();
      await card(name).getByText('idle', { exact: true }).waitFor();
    }
    expect((await card('Researcher').getByRole('list').innerText()).split('\n')).toEqual([
      ...['research', 'english', 'tides', '+1'],
    ]);
    await card('Critic').getByText('no capabilities').waitFor();
    await card('Writer').getByText('no sample yet').waitFor();
    expect(await findViolations(page)).toEqual([]);
  });

  it('follow each state and phase live: speaking from the first text, waiting for an approval', async () => {
    const { page } = world;
    await say('Researcher', 'please speak');
    await card('Researcher').getByText('working: speaking').waitFor();
    expect(await agentOf('Researcher')).toMatchObject({ state: 'working', phase: 'speaking' });
    await say('Writer', 'please calculate');
    await card('Writer').getByText('waits for approval').waitFor();
    const { current } = await agentOf('Writer');
    expect(await card('Writer').getByRole('link', { name: 'Decide' }).getAttribute('href')).toBe(
      `/approvals?id=${current?.approvalId}`,
    );
    // Those that need a person come first, then those that work.
    const first = await page
      .locator('[data-agent]')
      .evaluateAll((cards) => cards.slice(0, 2).map((one) => one.getAttribute('data-agent')));
    expect(first).toEqual([ids['Writer'], ids['Researcher']]);
    await card('Critic').getByRole('button', { name: 'Pause' }).click();
    await card('Critic').getByText('paused', { exact: true }).waitFor();
    expect(await agentOf('Critic')).toMatchObject({ state: 'paused' });
    await card('Critic').getByRole('button', { name: 'Resume' }).click();
    await card('Critic').getByRole('button', { name: 'Pause' }).waitFor();
    speaking.resolve();
    await card('Researcher').getByText('idle', { exact: true }).waitFor();
    expect(world.errors).toEqual([]);
  });

  it('are filtered by state, capability, model and text, in the address', async () => {
    const { page } = world;
    await page.goto('/agents');
    const names = async () => (await page.locator('[data-agent] header a').allInnerTexts()).sort();
    const shows = (expected: readonly string[]) =>
      waitForValue(`the cards ${expected}`, async () =>
        JSON.stringify(await names()) === JSON.stringify(expected) ? true : undefined,
      );
    await shows(['Claude', 'Critic', 'Gpt', 'Researcher', 'Writer']);
    await page.getByLabel('Capability').selectOption('tides');
    await shows(['Researcher']);
    await page.goto('/agents?model=gpt-4o-mini');
    await shows(['Critic']);
    await page.goto('/agents?q=wri');
    await shows(['Writer']);
    await page.goto('/agents?state=working');
    await shows(['Writer']);
    await button('Table').click();
    await page
      .getByRole('row', { name: /^Writer/ })
      .getByText('waits for approval')
      .waitFor();
    expect(new URL(page.url()).search).toBe('?state=working&view=table');
  });
});

describe('a workflow of five nodes', () => {
  it('is drawn, saved and executed: nodes run, complete and fail, and edges show which are active', async () => {
    const { page } = world;
    const graph = page.getByRole('application', { name: /^Graph of the/ });
    await page.goto('/workflows/new');
    await button('+ Gpt').waitFor();
    await graph.focus();
    for (const prompt of ['first', 'second', 'hold it', 'fourth', 'fail now']) {
      await graph.press('a');
      await graph.press('Enter');
      await page.locator('aside input:focus').waitFor();
      await page.getByRole('textbox', { name: 'Prompt' }).fill(prompt);
      await graph.focus();
    }
    await button('Save as version 1').click();
    await page.waitForURL(/workflows\/[0-9a-f-]{36}\/edit/);
    await button('Run').click();
    await button('Start the run').click();
    await page.waitForURL(/run=/);
    const runId = new URL(page.url()).searchParams.get('run');
    await page.goto(`/runs/${runId}`);
    const edges = page.getByRole('list', { name: 'Edges' });
    const states = async () =>
      (await readApi<RunView>(world, `/api/v1/runs/${runId}`)).tasks.map(({ status }) => status);
    await graph.locator('#node-step-3').getByText('running').waitFor();
    await edges.getByText('1 active').waitFor();
    expect(await states()).toEqual(['completed', 'completed', 'running', 'waiting', 'waiting']);
    expect((await edges.innerText()).split('\n')).toEqual(['1 active', '1 taken', '2 wait']);
    const edge = (from: number, state: string) =>
      graph.getByLabel(`step-${from + 1} needs step-${from}: ${state}`);
    for (const [from, state] of [
      [1, 'taken'],
      [2, 'active'],
      [3, 'waits'],
      [4, 'waits'],
    ] as const)
      expect([from, await edge(from, state).count()]).toEqual([from, 1]);
    await graph.locator('#node-step-3').getByText('running').waitFor();
    expect(await findViolations(page)).toEqual([]);
    running.resolve();
    await graph.locator('#node-step-5').getByText('failed').waitFor();
    expect((await edges.innerText()).split('\n')).toEqual(['4 taken']);
    expect(await states()).toEqual([...Array<string>(4).fill('completed'), 'failed']);
    // The failure of the run is told on every page.
    await page.getByRole('log', { name: 'Failures' }).getByText('run failed').waitFor();
  });

  it('tells a failed task of the queue by a toast', async () => {
    const { page } = world;
    await page.goto('/agents');
    // The tab follows the log once it knows its head.
    await page.getByText(/Live event [\d,]+/).waitFor();
    const task = { prompt: 'fail again', agent: 'claude', retry: { maxStrikes: 1 } };
    const created = await call<{ id: string }>('', 'POST', '/tasks', task);
    expect([created.status, created.body]).toEqual([201, expect.anything()]);
    await page.getByRole('log', { name: 'Failures' }).getByText('task ended').waitFor();
  });
});

describe('the messages of two agents', () => {
  const keyOf = async (name: string): Promise<string> => {
    const request = { name, role: 'member', agentId: ids[name] };
    return (await call<{ token: string }>('', 'POST', '/keys', request)).body.token;
  };
  /** Sends a message of one agent to another one. Returns its id. */
  const send = async (from: string, to: string, message: object): Promise<string> => {
    const body = { to: { agent: ids[to] }, ...message };
    const sent = await call<{ messageId: string }>(await keyOf(from), 'POST', '/messages', body);
    expect([sent.status, sent.body]).toEqual([201, expect.anything()]);
    return sent.body.messageId;
  };

  it('are a thread of request and reply with read marks, live and in the past', async () => {
    const { page } = world;
    await page.goto('/messages');
    await page.getByText(/Live event [\d,]+/).waitFor();
    const line = (id: string) => page.locator(`[data-message="${id}"]`);
    const request = await send('Researcher', 'Claude', { type: 'Request', content: { text: 'Is it good?' } });
    await line(request).getByText('not read').waitFor();
    await send('Writer', 'Researcher', { type: 'AgentSpoke', content: { text: 'Another thread.' } });
    await say('Claude', 'look at your messages');
    await line(request).getByText('read', { exact: true }).waitFor();
    const reply = await send('Claude', 'Researcher', {
      ...{ type: 'Reply', cause: request },
      content: { text: 'It is.', to: request },
    });
    await line(reply).getByText('not read').waitFor();
    const shown = await page
      .locator('[data-message]')
      .evaluateAll((lines) => lines.map((one) => one.getAttribute('data-message')));
    expect(shown.slice(0, 2)).toEqual([request, reply]);
    const { messages } = await readApi<{ messages: { messageId: string; logPosition: number }[] }>(
      world,
      '/api/v1/messages',
    );
    expect(messages.map(({ messageId }) => messageId).sort()).toEqual([...shown].sort());
    expect(await findViolations(page)).toEqual([]);
    const at = messages.find(({ messageId }) => messageId === request)?.logPosition;
    await page.goto(`/messages?at=${at}`);
    await line(request).getByText('not read').waitFor();
    expect(await page.locator('[data-message]').count()).toBe(1);
  });

  it('are written to an agent, and answered, from the page', async () => {
    const { page } = world;
    await page.goto('/messages?type=AgentSpoke');
    await button('Write a message').click();
    const dialog = page.getByRole('dialog', { name: 'Write a message' });
    await dialog.getByLabel('Agent', { exact: true }).selectOption(ids['Writer'] ?? '');
    await dialog.getByLabel('Text').fill('Please begin.');
    await dialog.getByRole('button', { name: 'Send' }).click();
    await dialog.waitFor({ state: 'detached' });
    await page.locator('[data-message]').getByText('Please begin.').waitFor();
    expect(await readApi(world, `/api/v1/agents/${ids['Writer']}/messages`)).toMatchObject({
      messages: [{ content: { text: 'Please begin.' }, type: 'AgentSpoke' }],
    });
  });
});

describe('the metrics of agents', () => {
  it('come as frames, without a read, and equal the API', async () => {
    // The sample of the work that the first tests began.
    await watcher.locator(`[data-agent="${ids['Critic']}"]`).getByText('CPU').waitFor({ timeout: 40_000 });
    expect(metricsReads).toBe(readsBefore);
    const { page } = world;
    await page.goto('/');
    await card('Critic').getByText('Memory').waitFor();
    expect(readsBefore).toBeGreaterThan(0);
    const { agents } = await readApi<AgentMetricsReply>(
      world,
      `/api/v1/agent-metrics?agents=${ids['Critic']}&minutes=30`,
    );
    const { samples } = await readApi<{ samples: AgentMetrics[] }>(
      world,
      `/api/v1/agents/${ids['Critic']}/metrics`,
    );
    const usage = await readApi<{ total: { settledTokens: number; settledMicroUsd: number } }>(
      world,
      `/api/v1/usage?agent=${ids['Critic']}&day=${new Date().toISOString().slice(0, 10)}`,
    );
    const { settledTokens, settledMicroUsd } = usage.total;
    expect(agents[0]).toMatchObject({ latest: samples[0], today: { settledTokens, settledMicroUsd } });
    for (const shown of [card('Critic'), watcher.locator(`[data-agent="${ids['Critic']}"]`)]) {
      const text = await shown.innerText();
      expect(text).toContain(`${settledTokens} tokens`);
      expect(text).toContain(`${((samples[0]?.memoryBytes ?? 0) / 1_048_576).toFixed(1)} MiB`);
    }
  });

  it('of an hour, a day and a month are charts with a table and a file', async () => {
    const { page } = world;
    await page.goto(`/agents/${ids['Researcher']}?tab=metrics`);
    const chart = page.getByRole('figure', { name: /^Tokens of/ });
    await chart.waitFor();
    for (const words of ['24 hours', '30 days', '1 hour']) {
      await button(words).click();
      await chart.getByText(`in ${words}`).waitFor();
    }
    await chart.locator('summary').click();
    await chart.getByRole('row').nth(120).waitFor();
    expect(await chart.getByRole('row').count()).toBe(121);
    expect(await page.getByRole('button', { name: /^Save as CSV/ }).count()).toBe(4);
    expect(await findViolations(page)).toEqual([]);
  });

  it('and its work, memory, money and history are parts of the page of an agent', async () => {
    const { page } = world;
    const parts = page.getByRole('navigation', { name: 'Parts of the agent' });
    await page.goto(`/agents/${ids['Critic']}`);
    for (const name of ['Chats', 'Tasks', 'Messages', 'Memory', 'Money', 'Definition', 'History', 'Now']) {
      await parts.getByRole('link', { name, exact: true }).click();
      await parts.locator('[aria-current=page]').getByText(name, { exact: true }).waitFor();
      await page.locator('main p[aria-busy=true]').first().waitFor({ state: 'detached' });
      expect([name, await page.locator('main [role=alert]').count()]).toEqual([name, 0]);
    }
  });
});
