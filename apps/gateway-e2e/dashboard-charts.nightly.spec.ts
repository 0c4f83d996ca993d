import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { findViolations, readApi, startDashboardWorld, type DashboardWorld } from './dashboard-world.js';
import { readEvents, waitForValue } from './stack-under-test.js';

jest.setTimeout(120_000);

const TURNS = 3;
const CHARTS = ['Turns a minute', 'Events a minute', 'Cost a minute', 'Cost a day', 'Lag'];

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
    await open();
    for (const name of CHARTS) {
      await chart(name).waitFor({ timeout: 30_000 });
      expect(await chart(name).locator('figcaption').innerText()).toMatch(/\d.* at most /);
      expect((await readTable(name)).some(([, cell]) => numberOf(cell) !== null)).toBe(true);
    }
  });

  it('count the turns that the log and the metrics of the gateway have', async () => {
    await open();
    const turns = await readEvents(world.stack, { type: 'TurnRequested' });
    const text = await (await fetch(`${world.stack.gatewayUrl}/metrics`)).text();
    const [, sent] =
      /^antiphon_turn_stage_seconds_count\{[^}]*stage="request_sent"[^}]*\} (\d+)/m.exec(text) ?? [];
    expect([turns.length, Number(sent)]).toEqual([TURNS, TURNS]);
    const rows = await readTable('Turns a minute');
    expect([rows.length, sumOf(rows)]).toEqual([30, TURNS]);
    // Each turn is in the minute that ends at or after it.
    const counted = rows.map(([time = '', cell]) => {
      const end = Date.parse(time);
      const within = turns.filter(({ recordedAt }) => {
        const at = Date.parse(recordedAt);
        return at > end - 60_000 && at <= end;
      });
      return [numberOf(cell), within.length];
    });
    expect(counted.filter(([shown, wanted]) => shown !== wanted)).toEqual([]);
    expect(await chart('Turns a minute').locator('figcaption').innerText()).toContain(
      `${TURNS} in 30 minutes`,
    );
  });

  it('sum the cost that the log and the usage have', async () => {
    await open();
    const settled = await readEvents(world.stack, { type: 'BudgetSettled' });
    const microUsd = settled.reduce((sum, { data }) => sum + Number(data['microUsd']), 0);
    expect(microUsd).toBeGreaterThan(0);
    expect(sumOf(await readTable('Cost a minute'))).toBeCloseTo(microUsd / 1e6, 9);
    const { groups } = await readApi<{ groups: { name: string; settledMicroUsd: number }[] }>(
      world,
      '/api/v1/usage?by=day',
    );
    const days = await readTable('Cost a day');
    expect(days.map(([day, cell]) => [day, numberOf(cell)])).toEqual(
      groups.toReversed().map(({ name, settledMicroUsd }) => [name, settledMicroUsd / 1e6]),
    );
  });

  it('show a rate of events and the lag of the slowest read model', async () => {
    await open();
    const before = await readApi<{ head: number }>(world, '/api/v1/projections');
    const [lag] = (await readTable('Lag')).slice(-1);
    expect(lag?.slice(1)).toEqual(['0', '0']);
    const headers = { 'content-type': 'application/json' };
    const body = JSON.stringify({ name: 'sample', role: 'viewer' });
    await fetch(`${world.stack.gatewayUrl}/api/v1/keys`, { method: 'POST', headers, body });
    await chart('Events a minute').waitFor({ timeout: 30_000 });
    const rate = await waitForValue('a rate of events', async () => {
      const rows = await readTable('Events a minute');
      return rows.map(([, cell]) => numberOf(cell) ?? 0).find((value) => value > 0);
    });
    const { head } = await readApi<{ head: number }>(world, '/api/v1/projections');
    expect(head).toBeGreaterThan(before.head);
    // Two reads are about 10 s apart.
    expect(rate).toBeGreaterThan(((head - before.head) * 60) / 25);
    expect(rate).toBeLessThanOrEqual(((head - before.head) * 60) / 5);
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
    const isLine = ['Events a minute', 'Lag'].includes(name);
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

  it('shows the cost of days as of its position, and the other charts as current', async () => {
    const { page } = world;
    const [first] = await readEvents(world.stack, { type: 'BudgetSettled' });
    const at = Number(first?.position);
    await open(`/performance?at=${at}`);
    await page.getByRole('heading', { name: `Cost a day, as of event ${at}` }).waitFor();
    expect(sumOf(await readTable('Cost a day'))).toBeCloseTo(Number(first?.data['microUsd']) / 1e6, 9);
    for (const name of CHARTS.filter((each) => each !== 'Cost a day'))
      expect(await page.getByRole('region', { name, exact: true }).locator('[data-of-now]').count()).toBe(1);
    await open(`/performance?at=1`);
    await page.getByText('No model call has been made yet').waitFor();
  });

  it.each(['light', 'dark'] as const)('violates no rule with open values, %s', async (colorScheme) => {
    const { page } = world;
    await page.emulateMedia({ colorScheme });
    await open();
    for (const name of CHARTS.filter((each) => each !== 'Events a minute')) await readTable(name);
    expect(await findViolations(page)).toEqual([]);
  });

  it('says why a chart is missing, and shows the others', async () => {
    const page = await world.browser.newPage({ baseURL: world.stack.gatewayUrl });
    const refuse = {
      status: 403,
      json: { title: 'forbidden', detail: 'your role lacks events:read', status: 403 },
    };
    await page.route('**/api/v1/events?type=**', (route) => route.fulfill(refuse));
    await page.goto('/performance');
    const turns = page.getByRole('region', { name: 'Turns a minute', exact: true });
    await turns.getByText('your role lacks events:read').waitFor();
    await page.getByRole('figure', { name: 'Lag', exact: true }).waitFor();
    await page.close();
  });

  it('reports nothing, and no request leaves the origin', () => {
    expect([world.leaks, world.errors]).toEqual([[], []]);
  });
});
