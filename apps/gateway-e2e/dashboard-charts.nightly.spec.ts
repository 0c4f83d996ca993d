import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import {
  findViolations,
  readApi,
  savePictures,
  startDashboardWorld,
  type DashboardWorld,
} from './dashboard-world.js';
import { readEvents, waitForValue } from './stack-under-test.js';

jest.setTimeout(120_000);

const TURNS = 3;
const RATES = ['Turns', 'Failures', 'Open turns and tasks', 'Cost', 'Tokens', 'Calls', 'Events'];
const CHARTS = [...RATES, 'Cost a day', 'Lag'];
const LINES = ['Open turns and tasks', 'Tokens', 'Calls', 'Lag'];

let world: DashboardWorld;
beforeAll(async () => {
  world = await startDashboardWorld();
  const { page, stack } = world;
  for (let turn = 1; turn <= TURNS; turn += 1) {
    await page.goto('/agents/claude');
    await page.getByLabel('Message to Claude').fill('hello');
    await page.getByRole('button', { name: 'Start a conversation' }).click();
    await waitForValue(`the end of turn ${turn}`, async () =>
      (await readEvents(stack, { type: 'TurnCompleted' })).length === turn ? true : undefined,
    );
  }
  await waitForValue('the cost of all turns', async () =>
    (await readEvents(stack, { type: 'BudgetSettled' })).length === TURNS ? true : undefined,
  );
}, 240_000);
afterAll(() => world?.stop());

const chart = (name: string) => world.page.getByRole('figure', { name, exact: true });

/** Texts of the rows of a table, the last one first. A time is its exact one. */
const READ_ROWS = `(table) => [...table.querySelectorAll('tbody tr')].reverse().map((row) =>
  [...row.cells].map((cell) => cell.querySelector('time')?.dateTime ?? cell.innerText))`;
/** Heights of the drawn columns. */
const READ_HEIGHTS = `(figure) => [...figure.querySelectorAll('rect:not([data-tip])')].map((each) =>
  Number(each.getAttribute('height')))`;
/** Texts that the pointer shows over the drawing. */
const READ_TIPS = `(figure) => [...figure.querySelectorAll('[data-tip]')].map((each) => each.dataset.tip)`;

/** Calls a function of the page with an element. */
const callWith = <T>(fn: string, element: string): Promise<T> =>
  world.page.evaluate<T>(`(${fn})(document.querySelector(${JSON.stringify(element)}))`);

/** Opens the values of a chart, and reads its table, the oldest row first. */
const readTable = async (name: string): Promise<string[][]> => {
  const table = world.page.getByRole('region', { name: `Values of ${name}`, exact: true });
  if (!(await table.isVisible())) await chart(name).locator('summary').click();
  await table.locator('tbody tr').first().waitFor();
  return callWith(READ_ROWS, `[aria-label="Values of ${name}"]`);
};

const numberOf = (cell: string | undefined): number | null =>
  cell === undefined || cell === 'not known' ? null : Number(cell.replaceAll(',', ''));
const sumOf = (rows: readonly string[][]): number =>
  rows.reduce((sum, [, cell]) => sum + (numberOf(cell) ?? 0), 0);

/** Saves the values of a chart, and returns the cells of the file without its head. */
const saveChart = async (name: string): Promise<{ head: string[]; rows: string[][] }> => {
  const waiting = world.page.waitForEvent('download');
  await chart(name)
    .getByRole('button', { name: /^Save as CSV/ })
    .click();
  const text = readFileSync(await (await waiting).path(), 'utf8');
  const [head = [], ...rows] = text
    .trimEnd()
    .split('\r\n')
    .map((line) => line.split(','));
  return { head, rows };
};

const open = async (path = '/performance'): Promise<void> => {
  await world.page.goto(path);
  await chart('Lag').waitFor();
};

describe('the charts over time', () => {
  it('have a point after some turns, and a sentence', async () => {
    const { page } = world;
    await open();
    for (const name of CHARTS) {
      await chart(name).waitFor({ timeout: 30_000 });
      expect(await chart(name).locator('figcaption').innerText()).toMatch(/\d.* at most /);
      expect((await readTable(name)).some(([, cell]) => numberOf(cell) !== null)).toBe(true);
    }
    await open();
    await chart('Turns').scrollIntoViewIfNeeded();
    await savePictures(page, 'performance');
  });

  it('count the turns that the log and the metrics of the gateway have, from the first read', async () => {
    const turns = await readEvents(world.stack, { type: 'TurnRequested' });
    const text = await (await fetch(`${world.stack.gatewayUrl}/metrics`)).text();
    const [, sent] =
      /^antiphon_turn_stage_seconds_count\{[^}]*stage="request_sent"[^}]*\} (\d+)/m.exec(text) ?? [];
    expect([turns.length, Number(sent)]).toEqual([TURNS, TURNS]);
    // A new tab has history at once: the server counts while no page is open.
    const page = await world.browser.newPage({ baseURL: world.stack.gatewayUrl });
    const reads: string[] = [];
    page.on('request', (request) => reads.push(new URL(request.url()).pathname));
    await page.goto('/performance');
    const caption = page.getByRole('figure', { name: 'Turns', exact: true }).locator('figcaption');
    expect(await caption.innerText()).toContain(`${TURNS} turns in 1 hour`);
    expect(reads.filter((path) => path === '/api/v1/rates')).toHaveLength(1);
    await page.close();
    await open();
    const rows = await readTable('Turns');
    expect([rows.length, sumOf(rows)]).toEqual([60, TURNS]);
    // Each turn is in the minute of the time at which it was recorded.
    const counted = rows.map(([time = '', cell]) => {
      const start = Date.parse(time);
      const within = turns.filter(({ recordedAt }) => {
        const at = Date.parse(recordedAt);
        return at >= start && at < start + 60_000;
      });
      return [numberOf(cell), within.length];
    });
    expect(counted.filter(([shown, wanted]) => shown !== wanted)).toEqual([]);
  });

  it('sum the cost that the log and the usage have', async () => {
    await open();
    const settled = await readEvents(world.stack, { type: 'BudgetSettled' });
    const microUsd = settled.reduce((sum, { data }) => sum + Number(data['microUsd']), 0);
    expect(microUsd).toBeGreaterThan(0);
    expect(sumOf(await readTable('Cost'))).toBeCloseTo(microUsd / 1e6, 9);
    const { groups } = await readApi<{ groups: { name: string; settledMicroUsd: number }[] }>(
      world,
      '/api/v1/usage?by=day',
    );
    const days = await readTable('Cost a day');
    expect(days.map(([day, cell]) => [day, numberOf(cell)])).toEqual(
      groups.toReversed().map(({ name, settledMicroUsd }) => [name, settledMicroUsd / 1e6]),
    );
  });

  it.each(['24 hours', '30 days'])('cover %s, with the same sums', async (words) => {
    const { page } = world;
    await open();
    await page.getByRole('button', { name: words, exact: true }).click();
    await chart('Turns')
      .locator('figcaption', { hasText: `${TURNS} turns in ${words}` })
      .waitFor();
    expect(sumOf(await readTable('Turns'))).toBe(TURNS);
    await page.reload();
    await chart('Turns')
      .locator('figcaption', { hasText: `in ${words}` })
      .waitFor();
    const [, tokens] = (await readTable('Tokens')).at(-1) ?? [];
    expect(numberOf(tokens)).toBeGreaterThan(0);
  });

  it('count new events while the page is open, and the lag of the slowest read model', async () => {
    await open();
    const before = sumOf(await readTable('Events'));
    const [lag] = (await readTable('Lag')).slice(-1);
    expect(lag?.slice(1)).toEqual(['0', '0']);
    const headers = { 'content-type': 'application/json' };
    const body = JSON.stringify({ name: 'sample', role: 'viewer' });
    await fetch(`${world.stack.gatewayUrl}/api/v1/keys`, { method: 'POST', headers, body });
    await waitForValue('one more event', async () =>
      sumOf(await readTable('Events')) > before ? true : undefined,
    );
  });
});

describe('the values of a chart', () => {
  it.each(CHARTS)('%s are the same in its drawing, its table and its file', async (name) => {
    await open();
    await chart(name).waitFor({ timeout: 30_000 });
    // A read in between replaces the values, and all of them are read again.
    const { table, tips, heights, file } = await waitForValue('equal values', async () => {
      const table = await readTable(name);
      const tips = await callWith<string[]>(READ_TIPS, `figure[aria-label="${name}"]`);
      const heights = await callWith<number[]>(READ_HEIGHTS, `figure[aria-label="${name}"]`);
      const file = await saveChart(name);
      const isSame = JSON.stringify(await readTable(name)) === JSON.stringify(table);
      return isSame ? { table, tips, heights, file } : undefined;
    });
    const inTable = table.map(([time, ...cells]) => [time, ...cells.map(numberOf)]);
    const inFile = file.rows.map(([time, ...cells]) => [
      time,
      ...cells.map((cell) => (cell === '' ? null : Number(cell))),
    ]);
    expect(inFile).toEqual(inTable);
    expect(file.head[0]).toBe(name === 'Cost a day' ? 'Day (UTC)' : 'Time');
    expect(tips).toHaveLength(table.length);
    const drawn = inTable.map(([, value]) => Number(value)).filter((value) => value > 0);
    const isLine = LINES.includes(name);
    const most = [Math.max(...heights), Math.max(...drawn)] as const;
    expect(heights.map((height) => (height / most[0]).toFixed(6))).toEqual(
      isLine ? [] : drawn.map((value) => (value / most[1]).toFixed(6)),
    );
  });
});

describe('the page of metrics', () => {
  it('keeps its readings while another page is shown', async () => {
    const { page } = world;
    await open();
    const [first] = await readTable('Lag');
    await page.getByRole('link', { name: 'Money', exact: true }).click();
    await page.getByRole('heading', { name: 'Money', exact: true }).waitFor();
    await page.getByRole('link', { name: 'Metrics', exact: true }).click();
    await chart('Lag').waitFor();
    expect((await readTable('Lag'))[0]).toEqual(first);
  });

  it('shows rates and the cost of days as of its position, and the lag as current', async () => {
    const { page } = world;
    const [first] = await readEvents(world.stack, { type: 'BudgetSettled' });
    const at = Number(first?.position);
    await open(`/performance?at=${at}`);
    await page.getByRole('heading', { name: `Cost a day, as of event ${at}` }).waitFor();
    expect(sumOf(await readTable('Cost a day'))).toBeCloseTo(Number(first?.data['microUsd']) / 1e6, 9);
    // Minutes that had ended by then.
    const { buckets } = await readApi<{ buckets: { turns: number }[] }>(
      world,
      `/api/v1/rates?span=1h&at=${at}`,
    );
    expect(sumOf(await readTable('Turns'))).toBe(buckets.reduce((sum, { turns }) => sum + turns, 0));
    for (const name of RATES)
      expect(await page.getByRole('region', { name, exact: true }).locator('[data-of-now]').count()).toBe(0);
    const lag = page.getByRole('region', { name: 'Lag', exact: true });
    expect(await lag.locator('[data-of-now]').count()).toBe(1);
    await open(`/performance?at=1`);
    await page.getByText('No model call has been made yet').waitFor();
  });

  it.each(['light', 'dark'] as const)('violates no rule with open values, %s', async (colorScheme) => {
    const { page } = world;
    await page.emulateMedia({ colorScheme });
    await open();
    for (const name of CHARTS) await readTable(name);
    expect(await findViolations(page)).toEqual([]);
  });

  it('says why a chart is missing, and shows the others', async () => {
    const page = await world.browser.newPage({ baseURL: world.stack.gatewayUrl });
    const refuse = {
      status: 403,
      json: { title: 'forbidden', detail: 'your role lacks events:read', status: 403 },
    };
    await page.route('**/api/v1/rates?**', (route) => route.fulfill(refuse));
    await page.goto('/performance');
    await page.getByText('your role lacks events:read').waitFor();
    await page.getByRole('figure', { name: 'Cost a day', exact: true }).waitFor();
    await page.getByRole('figure', { name: 'Lag', exact: true }).waitFor();
    await page.close();
  });

  it('reports nothing, and no request leaves the origin', () => {
    expect([world.leaks, world.errors]).toEqual([[], []]);
  });
});
