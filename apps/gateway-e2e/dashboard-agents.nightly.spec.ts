import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import type { AgentMetrics, RunView } from '@antiphon/contracts/agent';
import type { AgentMetricsReply } from '@antiphon/contracts/gateway';
import type { Page } from 'playwright-core';
import { AGENTS, AgentsOnPage, AskedModel } from './agents-on-page.js';
import { findViolations, readApi, startDashboardWorld, type DashboardWorld } from './dashboard-world.js';

jest.setTimeout(90_000);

const model = new AskedModel();
let world: DashboardWorld;
const agents = new AgentsOnPage(() => world);
/** A second tab, which shows the overview all the time, and its reads of metrics. */
let watcher: Page;
let [metricsReads, readsBefore] = [0, 0];
beforeAll(async () => {
  world = await startDashboardWorld({ model: model.script });
  for (const spec of AGENTS) await agents.spawnByDialog(spec);
  watcher = await watchOverview();
  readsBefore = metricsReads;
  await agents.say('Critic', 'hello');
}, 120_000);
afterAll(async () => {
  model.release();
  await world?.stop();
});

const button = (name: string | RegExp) => world.page.getByRole('button', { name, exact: true });

/** Opens a second tab that counts its reads of metrics. */
const watchOverview = async (): Promise<Page> => {
  const page = await world.browser.newPage({ baseURL: world.stack.gatewayUrl });
  page.on('request', (request) => {
    metricsReads += Number(new URL(request.url()).pathname === '/api/v1/agent-metrics');
  });
  await page.goto('/');
  await page
    .locator(`[data-agent="${agents.idOf('Critic')}"]`)
    .getByText('no sample yet')
    .waitFor();
  await page.waitForLoadState('networkidle');
  return page;
};

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
    model.release();
    await graph.locator('#node-step-5').getByText('failed').waitFor();
    expect((await edges.innerText()).split('\n')).toEqual(['4 taken']);
    expect(await states()).toEqual([...Array<string>(4).fill('completed'), 'failed']);
    // The failure of the run is told on every page.
    await page.getByRole('log', { name: 'Failures' }).getByText('run failed').waitFor();
  });
});

describe('the metrics of agents', () => {
  it('come as frames, without a read, and equal the API', async () => {
    // The sample of the work that the first tests began.
    await watcher
      .locator(`[data-agent="${agents.idOf('Critic')}"]`)
      .getByText('CPU')
      .waitFor({ timeout: 40_000 });
    expect(metricsReads).toBe(readsBefore);
    const { page } = world;
    await page.goto('/');
    await agents.card('Critic').getByText('Memory').waitFor();
    expect(await findViolations(page)).toEqual([]);
    expect(readsBefore).toBeGreaterThan(0);
    const { agents: metrics } = await readApi<AgentMetricsReply>(
      world,
      `/api/v1/agent-metrics?agents=${agents.idOf('Critic')}&minutes=30`,
    );
    const { samples } = await readApi<{ samples: AgentMetrics[] }>(
      world,
      `/api/v1/agents/${agents.idOf('Critic')}/metrics`,
    );
    const usage = await readApi<{ total: { settledTokens: number; settledMicroUsd: number } }>(
      world,
      `/api/v1/usage?agent=${agents.idOf('Critic')}&day=${new Date().toISOString().slice(0, 10)}`,
    );
    const { settledTokens, settledMicroUsd } = usage.total;
    expect(metrics[0]).toMatchObject({ latest: samples[0], today: { settledTokens, settledMicroUsd } });
    for (const shown of [agents.card('Critic'), watcher.locator(`[data-agent="${agents.idOf('Critic')}"]`)]) {
      const text = await shown.innerText();
      expect(text).toContain(`${settledTokens} tokens`);
      expect(text).toContain(`${((samples[0]?.memoryBytes ?? 0) / 1_048_576).toFixed(1)} MiB`);
    }
  });

  it('of an hour, a day and a month are charts with a table and a file', async () => {
    const { page } = world;
    await page.goto(`/agents/${agents.idOf('Critic')}?tab=metrics`);
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
});
