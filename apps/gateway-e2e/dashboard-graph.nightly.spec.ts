import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { checkFigure, measureContention, report } from '@antiphon/testing/load';
import { letTimePass } from '@antiphon/testing/waits';
import { readApi, startDashboardWorld, type DashboardWorld } from './dashboard-world.js';
import { waitForValue } from './stack-under-test.js';

jest.setTimeout(120_000);

/** A slow machine may raise a bound of time by at most this factor. */
const CAP = 3;

let world: DashboardWorld;
beforeAll(async () => {
  world = await startDashboardWorld({
    model: ({ user }) =>
      user.includes('fail')
        ? { status: 400, body: { error: { message: 'no such thing' } } }
        : { text: ['done'] },
  });
});
afterAll(() => world?.stop());

describe('a large graph', () => {
  it('a graph of 1,000 nodes pans and zooms while 50 nodes change in a second', async () => {
    const countFrames = `new Promise((resolve) => {
      let frames = 0; const from = performance.now();
      const step = () => { frames++; performance.now() - from < 3000 ? requestAnimationFrame(step) : resolve(frames / 3); };
      requestAnimationFrame(step);
    })`;
    const { page } = world;
    const { mouse } = page;
    const slowdown = Math.min(CAP, await measureContention());
    const pan = async (): Promise<number> => {
      const counted = page.evaluate(countFrames) as Promise<number>;
      await mouse.move(800, 500);
      await mouse.down();
      for (let step = 0; step < 60; step++) await mouse.move(800 + (step % 30) * 10, 500 + step * 2);
      await mouse.up();
      return counted;
    };
    const zoom = async (): Promise<number> => {
      const counted = page.evaluate(countFrames) as Promise<number>;
      await mouse.move(800, 500);
      for (let step = 0; step < 40; step++) await mouse.wheel(0, step % 20 < 10 ? -40 : 40);
      return counted;
    };
    const compare = (what: string, frames: number, empty: number): void => {
      report(`frames a second: ${frames.toFixed(1)} with ${what}, ${empty.toFixed(1)} with an empty page`);
      // Frames of software rendering vary with the machine. Both are measured one after the other.
      checkFigure({
        what: `dashboard: frames a second of ${what}, over those of an empty page`,
        value: frames / Math.min(60, empty),
        unit: '×',
        atLeast: 0.5,
      });
    };
    const countRenders = async (): Promise<number> =>
      Number(await page.locator('[data-renders]').getAttribute('data-renders'));
    await page.goto('/no-such-page');
    const empty = await pan();
    const from = performance.now();
    await page.goto('/dev/graph?nodes=1000', { waitUntil: 'commit' });
    await page.locator('[data-overview=nodes]').waitFor();
    checkFigure({
      what: 'dashboard: the first frame of a graph of 1,000 nodes, with its layout',
      value: performance.now() - from,
      unit: 'ms',
      atMost: 2_500 * slowdown,
    });
    await letTimePass(1_000);
    compare('a whole graph of 1,000 nodes', await pan(), empty);
    compare('a whole graph that is zoomed', await zoom(), empty);
    expect(await countRenders()).toBe(0);
    await page.getByRole('button', { name: 'Show the whole graph' }).click();

    const cards = page.locator('.react-flow__node');
    for (let step = 0; step < 10 && (await cards.count()) === 0; step++) {
      await page.getByRole('button', { name: 'Zoom in' }).click();
      await letTimePass(300);
    }
    const shown = await cards.count();
    expect(shown).toBeGreaterThan(10);
    const before = await countRenders();
    await cards.nth(5).click();
    await page.locator('[data-current]').waitFor();
    await letTimePass(1_000);
    // A choice renders one card, and 50 changes in a second those of them that are in sight.
    const after = await countRenders();
    checkFigure({
      what: `dashboard: renders of ${shown} cards in a second of changes and a choice`,
      value: after - before,
      unit: '',
      atMost: 40,
    });
    compare('its cards', await pan(), empty);
    checkFigure({
      what: 'dashboard: renders of cards while they are moved',
      value: (await countRenders()) - after,
      unit: '',
      atMost: 4 * shown,
    });
  });
});

describe('the graph of a run', () => {
  it('goes from failure to failure by n, and its table has the same states as the API', async () => {
    const { page, stack } = world;
    const post = async (path: string, body: object): Promise<string> => {
      const request = {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      };
      return String(
        ((await (await fetch(`${stack.gatewayUrl}/api/v1${path}`, request)).json()) as { id: string }).id,
      );
    };
    const node = (id: string, text: string, needs: string[] = []) => ({
      id,
      agent: 'claude',
      prompt: text,
      needs,
    });
    const nodes = [
      node('one', 'fail'),
      node('two', 'well'),
      node('three', 'fail'),
      node('four', 'well', ['three']),
    ];
    const workflowId = await post('/workflows', { definition: { name: 'fails', nodes } });
    const runId = await post(`/workflows/${workflowId}/start`, {});
    const read = () =>
      readApi<{ status: string; tasks: { id: string; status: string }[] }>(world, `/api/v1/runs/${runId}`);
    const { tasks } = await waitForValue('the end of the run', async () => {
      const run = await read();
      return run.status === 'failed' ? run : undefined;
    });
    const failed = tasks.filter(({ status }) => status === 'failed').map(({ id }) => id);
    expect(failed.length).toBeGreaterThan(0);
    await page.goto(`/runs/${runId}`);
    await page.getByRole('application', { name: /^Graph of the/ }).focus();
    // The page has chosen the first failure.
    await page.getByRole('heading', { name: `Result of ${failed[0]}` }).waitFor();
    for (const id of [...failed.slice(1), ...failed]) {
      await page.keyboard.press('n');
      await page.waitForURL((url) => url.searchParams.get('node') === id);
      await page.getByRole('heading', { name: `Result of ${id}` }).waitFor();
      await page.getByText('no such thing').first().waitFor();
    }
    const rows = page.getByRole('region', { name: 'Nodes of the run' }).last().locator('tbody tr');
    const texts = await rows.locator('td:nth-child(2)').allInnerTexts();
    expect(texts.map((text) => text.trim())).toEqual(tasks.map(({ status }) => status));
  });
});
