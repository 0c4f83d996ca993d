import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import type { RunView, WorkflowView } from '@antiphon/contracts/agent';
import { giveTimeToFail } from '@antiphon/testing/waits';
import type { Locator } from 'playwright-core';
import {
  findViolations,
  readApi,
  savePictures,
  startDashboardWorld,
  type DashboardWorld,
} from './dashboard-world.js';
import { FIND_OUTSIDE, FIND_TOUCHED, READ_ZOOM } from './graph-on-page.js';
import { waitForValue } from './stack-under-test.js';

jest.setTimeout(60_000);

let world: DashboardWorld;
/** A run of four nodes that has completed, and its workflow. */
let [workflowId, runId] = ['', ''];
beforeAll(async () => {
  world = await startDashboardWorld();
  workflowId = await saveWorkflow('Prepared');
  runId = (await post<{ id: string }>(`/workflows/${workflowId}/start`, {})).id;
  await waitForValue('the run', async () => {
    const { status } = await readApi<RunView>(world, `/api/v1/runs/${runId}`);
    return status === 'completed' || undefined;
  });
});
afterAll(() => world?.stop());

const post = async <T>(path: string, body: object): Promise<T> => {
  const response = await fetch(`${world.stack.gatewayUrl}/api/v1${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  if (!response.ok) throw new Error(`POST ${path}: ${response.status} ${await response.text()}`);
  return (await response.json()) as T;
};
/** Saves a workflow of four nodes: a chain of three, and a fourth after its first. Returns its id. */
const saveWorkflow = async (name: string): Promise<string> => {
  const node = (nth: number, ...needs: string[]) => ({
    ...{ id: `step-${nth}`, agent: 'gpt', prompt: `node ${nth}`, needs },
  });
  const nodes = [node(1), node(2, 'step-1'), node(3, 'step-2'), node(4, 'step-1')];
  return (await post<WorkflowView>('/workflows', { definition: { name, nodes } })).id;
};
const button = (name: string | RegExp) => world.page.getByRole('button', { name, exact: true });
const graph = () => world.page.getByRole('application', { name: /^Graph of the/ });
const card = (id: string) => graph().locator(`#node-${id}`);
const edges = () => graph().locator('.react-flow__edge');
const saved = (id: string) => readApi<WorkflowView>(world, `/api/v1/workflows/${id}`);
const needsOf = ({ definition }: WorkflowView) => definition.nodes.map(({ id, needs }) => [id, ...needs]);

/** Writes the prompt of the current node by keys: Enter goes to its fields. */
const write = async (prompt: string): Promise<void> => {
  const { page } = world;
  const { keyboard } = page;
  await graph().press('Enter');
  await page.locator('aside input:focus').waitFor();
  await keyboard.press('Tab');
  await page.locator('aside select:focus').waitFor();
  await keyboard.press('Tab');
  await page.locator('aside textarea:focus').waitFor();
  await keyboard.type(prompt);
  await graph().focus();
};
/** Draws three nodes by keys, each after the one before. */
const drawChain = async (): Promise<void> => {
  await world.page.goto('/workflows/new');
  await button('+ Gpt').waitFor();
  await graph().focus();
  for (const prompt of ['first', 'second', 'third']) {
    await graph().press('a');
    await write(prompt);
  }
  await edges().nth(1).waitFor({ state: 'attached' });
};
const drag = async (from: Locator, to: Locator, drop = true): Promise<void> => {
  const { mouse } = world.page;
  const [a, b] = [await from.boundingBox(), await to.boundingBox()];
  if (!a || !b) throw new Error('a handle is not on the screen');
  await mouse.move(a.x + a.width / 2, a.y + a.height / 2);
  await mouse.down();
  await mouse.move(b.x + b.width / 2 - 30, b.y + b.height / 2, { steps: 4 });
  await mouse.move(b.x + b.width / 2, b.y + b.height / 2, { steps: 3 });
  if (drop) await mouse.up();
};

interface ShownRun {
  readonly at: number;
  /** True while the page shows an older position. */
  readonly isBusy: boolean;
  /** Id, state, number of tries and begin of the output of each node. */
  readonly rows: unknown;
}

/** Returns code for the page that drags over positions, and returns what is shown at each of them. */
const dragOver = (positions: readonly number[]): string => `new Promise((resolve) => {
  const slider = document.querySelector('input[type=range]');
  const set = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value').set;
  const positions = ${JSON.stringify(positions)}, shown = [];
  const row = ({ cells }) => [0, 1, 4].map((index) => cells[index].innerText.trim())
    .concat(cells[7].querySelector('summary')?.textContent.slice(0, 60) ?? null);
  const read = () => {
    const main = document.querySelector('main');
    const at = Number(document.querySelector('[role=group][aria-label="Position of the log"] strong').textContent.replace(/\\D/g, ''));
    const rows = [...main.querySelectorAll('tbody tr')].map(row);
    shown.push({ at, isBusy: main.querySelector('[aria-busy=true]') !== null, rows });
  };
  const step = (index) => {
    if (index > 0) read();
    if (index === positions.length) return resolve(shown);
    set.call(slider, String(positions[index]));
    slider.dispatchEvent(new Event('input', { bubbles: true }));
    // The position moves in the next frame.
    requestAnimationFrame(() => requestAnimationFrame(() => step(index + 1)));
  };
  step(0);
})`;

/** Returns the rows of the run as of a position, as the API has them. */
const rowsAt = async (at: number): Promise<unknown> => {
  const { tasks } = await readApi<RunView>(world, `/api/v1/runs/${runId}?at=${at}`);
  return tasks.map(({ id, status, attempt, output }) => [
    ...[id, status, String(attempt)],
    output?.slice(0, 60) ?? null,
  ]);
};

describe('the workflow editor in Chromium', () => {
  it('takes a key of the graph for no key of the navigation, also just after the page is loaded', async () => {
    const { page } = world;
    await page.goto('/workflows/new');
    await button('+ Gpt').waitFor();
    await graph().press('a');
    await card('step-1').waitFor();
    await page.keyboard.press('a');
    await card('step-2').waitFor();
    expect(await page.getByRole('dialog').count()).toBe(0);
    await page.keyboard.press('Control+z');
    await page.keyboard.press('Control+z');
  });

  it('draws nodes and edges by keys alone, and takes them back', async () => {
    const { page } = world;
    await drawChain();
    await graph().press('Control+z');
    await page.getByText('third', { exact: true }).waitFor({ state: 'detached' });
    await graph().press('Control+Shift+Z');
    await graph().press('ArrowLeft');
    expect(await graph().getAttribute('aria-activedescendant')).toBe('node-step-2');
    await graph().press('c');
    await page.getByLabel('From', { exact: true }).selectOption('step-3');
    await page.getByLabel('To', { exact: true }).selectOption('step-1');
    await page.getByText('close the cycle step-1 → step-2 → step-3 → step-1').waitFor();
    expect(await button('Connect').last().isDisabled()).toBe(true);
    await page.keyboard.press('Escape');
    expect(await edges().count()).toBe(2);
  });

  it('draws by the pointer, and refuses an edge that closes a cycle while it is drawn', async () => {
    const { page } = world;
    await drawChain();
    await button('+ Gpt').dragTo(graph(), { targetPosition: { x: 300, y: 60 } });
    await card('step-4').waitFor();
    await write('fourth after {{nodes.step-1.output}}');
    await drag(card('step-1').locator('.source'), card('step-4').locator('.target'));
    await page.getByText('“step-4” now needs “step-1”').waitFor();
    await drag(card('step-4').locator('.source'), card('step-1').locator('.target'), false);
    await page.getByText('close the cycle step-1 → step-4 → step-1').waitFor();
    await page.mouse.up();
    expect(await edges().count()).toBe(3);
    // The edges of the pointer are saved in the same way.
    await button('Save as version 1').click();
    await page.waitForURL(/workflows\/[0-9a-f-]{36}\/edit/);
    const view = await saved(new URL(page.url()).pathname.split('/')[2] ?? '');
    expect(needsOf(view)).toEqual([
      ['step-1'],
      ['step-2', 'step-1'],
      ['step-3', 'step-2'],
      ['step-4', 'step-1'],
    ]);
    expect(view.definition.nodes.map(({ agent }) => agent)[3]).toBe('gpt');
  });

  it('shows a problem on its node, and saves version 1 once there is none', async () => {
    const { page } = world;
    await drawChain();
    await card('step-1').click();
    await page.getByRole('textbox', { name: 'Prompt' }).fill('{{nodes.step-3.output}}');
    await card('step-1').getByText('problem', { exact: true }).waitFor();
    await page.getByRole('textbox', { name: 'Prompt' }).fill('first of all');
    await button('Save as version 1').click();
    await page.waitForURL(/workflows\/[0-9a-f-]{36}\/edit/);
    const view = await saved(new URL(page.url()).pathname.split('/')[2] ?? '');
    expect(view).toMatchObject({ version: 1, status: 'ready' });
    expect(needsOf(view)).toEqual([['step-1'], ['step-2', 'step-1'], ['step-3', 'step-2']]);
  });

  it('runs it, shows the nodes complete, and opens the output of one', async () => {
    const { page } = world;
    await page.goto(`/workflows/${await saveWorkflow('Runs')}/edit`);
    await button('Run').click();
    await button('Start the run').click();
    await page.getByText('4 of 4 nodes completed').waitFor();
    const run = await readApi<RunView>(world, `/api/v1/runs/${new URL(page.url()).searchParams.get('run')}`);
    expect(run.tasks.map(({ status }) => status)).toEqual(Array(4).fill('completed'));
    await card('step-4').click();
    await page.getByRole('heading', { name: 'Result of step-4' }).waitFor();
    const shown = await page.getByRole('region', { name: 'Output of step-4' }).innerText();
    expect(shown).toContain('<script>window.hacked=3</script>');
    expect(run.tasks[3]?.output).toContain('<script>window.hacked=3</script>');
  });

  it('asks before it saves over the version of another editor, and before it is left', async () => {
    const { page, stack } = world;
    const id = await saveWorkflow('Mine');
    await page.goto(`/workflows/${id}/edit?node=step-4`);
    await page.getByLabel('Turns at most').fill('2');
    const { definition } = await saved(id);
    const body = JSON.stringify({ definition: { ...definition, name: 'theirs' }, version: 1 });
    const headers = { 'content-type': 'application/json' };
    const put = () => fetch(`${stack.gatewayUrl}/api/v1/workflows/${id}`, { method: 'PUT', headers, body });
    expect((await put()).status).toBe(200);
    await page.getByText('Version 2 was saved elsewhere').waitFor();
    await page.getByRole('link', { name: 'Money', exact: true }).click();
    await page.getByRole('dialog', { name: 'Leave without saving?' }).waitFor();
    await button('Stay').click();
    await button('Save as version 2').click();
    await page.getByText('“step-4” differs').waitFor();
    await button('Save mine as version 3').click();
    const view = await waitForValue('version 3', async () => {
      const now = await saved(id);
      return now.version === 3 ? now : undefined;
    });
    expect(view.definition).toMatchObject({ name: 'Mine' });
    expect(view.definition.nodes[3]).toMatchObject({ attempts: 2 });
    expect(world.errors).toEqual([expect.stringContaining('409 (Conflict)')]);
    world.errors.length = 0;
  });

  it('shows the same run as a graph and as a table, on a page of its own', async () => {
    const { page } = world;
    await page.goto(`/runs/${runId}?node=step-2`);
    await card('step-2').waitFor();
    await page.getByRole('heading', { name: 'Result of step-2' }).waitFor();
    expect(await page.getByRole('region', { name: 'Nodes of the run' }).locator('tbody tr').count()).toBe(4);
  });

  it('chooses the last node of a run, puts the table first on a phone, and edges around nodes', async () => {
    const { page } = world;
    const node = (id: string, ...needs: string[]) => ({ id, agent: 'gpt', prompt: id, needs });
    const nodes = [node('plan'), node('write', 'plan'), node('review', 'write', 'plan')];
    const workflow = await post<WorkflowView>('/workflows', { definition: { name: 'Around', nodes } });
    const { id } = await post<{ id: string }>(`/workflows/${workflow.id}/start`, {});
    await page.goto(`/runs/${id}`);
    await page.getByText('3 of 3 nodes completed').waitFor();
    await page.getByRole('heading', { name: 'Result of review' }).waitFor();
    await edges().nth(2).waitFor({ state: 'attached' });
    expect(await page.evaluate(FIND_TOUCHED)).toEqual([]);
    const { temporalUi } = await readApi<{ temporalUi: string }>(world, '/api/v1/health');
    const link = await page.getByRole('link', { name: 'its workflow' }).getAttribute('href');
    expect(link).toBe(`${temporalUi}/namespaces/antiphon/workflows?query=WorkflowId%3D%22run%2F${id}%22`);
    const size = page.viewportSize();
    const zoom = async () => Number(await page.evaluate(READ_ZOOM));
    const fitted = await zoom();
    await page.setViewportSize({ width: 390, height: 844 });
    const [table, drawn] = [page.getByRole('region', { name: 'Nodes of the run' }), graph()];
    await waitForValue('the table before the graph', async () => {
      const [above, below] = [await table.boundingBox(), await drawn.boundingBox()];
      return above && below && above.y < below.y ? true : undefined;
    });
    await savePictures(page, 'run');
    // The graph fits itself to its box again, until a person has chosen a part of it.
    const outside = () => page.evaluate(FIND_OUTSIDE) as Promise<number>;
    await waitForValue('a graph in its box', async () => ((await outside()) === 0 ? true : undefined));
    expect(await zoom()).toBeLessThan(fitted);
    await page.setViewportSize(size ?? { width: 1_440, height: 900 });
    await waitForValue('a graph in a wide box', async () => ((await zoom()) === fitted ? true : undefined));
    await drawn.getByRole('button', { name: 'Zoom out' }).click();
    const chosen = await waitForValue('a chosen zoom', async () => {
      const now = await zoom();
      return now < fitted / 1.15 ? now : undefined;
    });
    await page.setViewportSize({ width: 1_200, height: 900 });
    await giveTimeToFail(300);
    expect(await zoom()).toBe(chosen);
    await page.setViewportSize(size ?? { width: 1_440, height: 900 });
  });

  it('shows the run as it was at each of its events, equal to the API there', async () => {
    const { page } = world;
    const { events } = await readApi<{ events: { position: number }[] }>(
      world,
      `/api/v1/events?run=${runId}&category=run`,
    );
    const middle = [1, Math.floor(events.length / 2), events.length - 2].map(
      (index) => events[index]?.position,
    );
    for (const at of middle) {
      await page.goto(`/runs/${runId}?at=${at}`);
      const run = await readApi<RunView>(world, `/api/v1/runs/${runId}?at=${at}`);
      const cells = page.getByRole('region', { name: 'Nodes of the run' }).locator('tbody td:nth-child(2)');
      await cells.nth(3).waitFor();
      const shown = (await cells.allInnerTexts()).map((text) => text.trim());
      expect([at, shown]).toEqual([at, run.tasks.map(({ status }) => status)]);
    }
  });

  it('shows the run at each position of a drag without a read for each, equal to the API there', async () => {
    const { page } = world;
    const { events } = await readApi<{ events: { position: number }[] }>(
      world,
      `/api/v1/events?run=${runId}&category=run`,
    );
    const [first = 0, last = 0] = [events[0]?.position, events.at(-1)?.position];
    const positions = Array.from(
      { length: 150 },
      () => first + Math.floor(Math.random() * (last - first + 1)),
    );
    await page.goto(`/runs/${runId}?at=${last - 1}`);
    await page.getByRole('region', { name: 'Nodes of the run' }).locator('tbody tr').nth(3).waitFor();
    await page.waitForLoadState('networkidle');
    const requests: string[] = [];
    const note = (request: { url(): string }): void => void requests.push(new URL(request.url()).pathname);
    page.on('request', note);
    const shown = (await page.evaluate(dragOver(positions))) as ShownRun[];
    page.off('request', note);
    const countOf = (path: string): number => requests.filter((one) => one === path).length;
    // Its first position is read, and one at which a slow machine pauses.
    expect(countOf(`/api/v1/runs/${runId}`)).toBeLessThan(10);
    expect(countOf(`/api/v1/runs/${runId}/history`)).toBe(1);
    const folded = shown.filter(({ isBusy }) => !isBusy);
    expect(folded.length).toBeGreaterThan(100);
    expect(new Set(folded.map(({ rows }) => JSON.stringify(rows))).size).toBeGreaterThan(5);
    for (const { at, rows } of folded) expect([at, rows]).toEqual([at, await rowsAt(at)]);
  });

  // @shows R7
  it('starts and stops a run in the list of workflows', async () => {
    const { page } = world;
    const node = { id: 'only', agent: 'gpt', prompt: 'hold', needs: [] };
    const { id } = await post<WorkflowView>('/workflows', { definition: { name: 'Holds', nodes: [node] } });
    await page.goto('/workflows');
    const row = page.getByRole('row').filter({ hasText: 'Holds' });
    await row.getByRole('button', { name: 'Run', exact: true }).click();
    await page.waitForURL(/\/edit\?run=/);
    await page.goto('/workflows');
    await row.getByRole('button', { name: 'Stop', exact: true }).click();
    await row.getByRole('button', { name: 'Run', exact: true }).waitFor();
    const { runs } = await readApi<{ runs: RunView[] }>(world, `/api/v1/runs?workflow=${id}`);
    expect(runs.map(({ status }) => status)).toEqual(['cancelled']);
  });

  it('violates no rule of WCAG 2.2 AA on its pages', async () => {
    const { page } = world;
    const edit = `/workflows/${workflowId}/edit`;
    const views = [`${edit}?node=step-2&run=${runId}`, `${edit}?view=text`];
    for (const [index, path] of views.entries()) {
      await page.emulateMedia({ colorScheme: index % 2 === 0 ? 'light' : 'dark' });
      await page.goto(path);
      await page.getByRole('heading', { level: 1 }).waitFor();
      await page.locator('main [aria-busy=true]').first().waitFor({ state: 'detached' });
      expect([path, await findViolations(page)]).toEqual([path, []]);
    }
  });

  it('sends no request to another origin, breaks no policy and logs no other error', () => {
    expect(world.leaks).toEqual([]);
    expect(world.errors).toEqual([]);
  });
});
