import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { checkFigure } from '@antiphon/testing/load';
import { createFaultyLink, type FaultyLink } from '@antiphon/testing/network';
import type { MockScript } from '@antiphon/testing/providers';
import { letTimePass } from '@antiphon/testing/waits';
import type { Page } from 'playwright-core';
import { startDashboardWorld, type DashboardWorld } from './dashboard-world.js';
import { createApiCaller, readEvents, waitForValue } from './stack-under-test.js';

jest.setTimeout(300_000);

const OFFLINE_MS = Number(process.env['ANTIPHON_OFFLINE_MS'] ?? 60_000);

/** Sends an answer in forty pieces over two seconds, so that a run is open while its gateway dies. */
const script: MockScript = () => ({
  reply: { text: Array.from({ length: 40 }, (_, index) => `piece ${index} `) },
  before: () => letTimePass(50),
});

let world: DashboardWorld;
let link: FaultyLink;
/** Gateway to which new connections of the browser lead. */
let gateway = 0;
const call = createApiCaller(() =>
  new URL(world.stack.wsUrls()[1] ?? '').href.replace(/^ws(.*)\/ws$/, 'http$1'),
);
/** Positions that the browser received on each of its sockets, in order. */
const received: number[][] = [];

const recordFrames = (page: Page): void => {
  page.on('websocket', (socket) => {
    const positions: number[] = [];
    received.push(positions);
    socket.on('framereceived', ({ payload }) => {
      const { event, data } = JSON.parse(String(payload)) as { event?: string; data?: { position: number } };
      if (event === 'log' && data) positions.push(data.position);
    });
  });
};

beforeAll(async () => {
  const through = async ({ wsUrls }: DashboardWorld['stack']): Promise<string> => {
    const targetPort = (): number => Number(new URL(wsUrls()[gateway] ?? '').port);
    link = await createFaultyLink({ targetPort });
    return `http://127.0.0.1:${link.port}`;
  };
  world = await startDashboardWorld({ model: script, settings: '', scale: { gateway: 2 }, through });
  recordFrames(world.page);
});
afterAll(async () => {
  await link?.close();
  await world?.stop();
});

const startRun = async (): Promise<string> => {
  const nodes = ['one', 'two', 'three'].map((id, index, all) => ({
    ...{ id, agent: index % 2 ? 'gpt' : 'claude', prompt: `do ${id}`, needs: all.slice(0, index) },
  }));
  const started = await call<{ id: string; runId?: string }>('', 'POST', '/runs', {
    workflow: { name: 'Long', nodes },
  });
  expect(started.status).toBeLessThan(300);
  return started.body.runId ?? started.body.id;
};
const waitForEnd = (runId: string) =>
  waitForValue(
    'the end of the run',
    async () => {
      const { body } = await call<{ status: string }>('', 'GET', `/runs/${runId}`);
      return body.status === 'completed' ? true : undefined;
    },
    120_000,
  );
const shown = (text: string) => world.page.getByText(text, { exact: true });
/** Positions of the whole log. */
const readLog = async (): Promise<number[]> => {
  const events = await readEvents({
    ...world.stack,
    gatewayUrl: `http://${new URL(world.stack.wsUrls()[1] ?? '').host}`,
  });
  return events.map(({ position }) => position);
};
/** Positions of the log after the first one that the browser received. */
const inLog = async (): Promise<number[]> => {
  const first = received.flat()[0] ?? 0;
  return (await readLog()).filter((position) => position >= first);
};
/** Waits until the browser has everything, and asserts that each event arrived once, in order. */
const expectEachOnce = async (): Promise<void> => {
  await waitForValue('the newest event', async () =>
    received.flat().at(-1) === (await inLog()).at(-1) ? true : undefined,
  );
  expect(received.flat()).toEqual(await inLog());
};
/** Asserts that the sockets after the first ones received no event that these had received. */
const expectNoneAgain = (sockets: number): void => {
  const last = received.slice(0, sockets).flat().at(-1) ?? 0;
  const later = received.slice(sockets).flat();
  expect(later.filter((position) => position <= last)).toEqual([]);
};
/** Asserts that the page shows the newest events of the log, each in one row. */
const expectRows = async (): Promise<void> => {
  const { page } = world;
  await page.getByRole('link', { name: 'Events', exact: true }).click();
  const cells = page.getByRole('table', { name: /^Events/ }).locator('[role=row] [role=cell]:first-child');
  await cells.first().waitFor();
  const newest = (await readLog()).toReversed();
  const rows = (await cells.allInnerTexts()).map((text) => Number(text.replaceAll(',', '')));
  expect(rows.length).toBeGreaterThan(10);
  expect(rows).toEqual(newest.slice(0, rows.length));
};

describe('a lost connection', () => {
  it('by kill -9 of the gateway in mid-run shows in 2 s, and continues at another gateway after the last event', async () => {
    const { page, stack } = world;
    await page.goto('/');
    await shown('Connected').waitFor();
    const runId = await startRun();
    // A page that is opened reads what was before its socket.
    received.length = 0;
    await page.goto(`/runs/${runId}`);
    await waitForValue('events of the run', async () => (received.flat().length > 5 ? true : undefined));
    const sockets = received.length;
    const pid = stack.stackJson().services.gateway[0]?.pid ?? 0;
    gateway = 1;
    process.kill(pid, 'SIGKILL');
    const killedAt = performance.now();
    await shown('Connection lost').waitFor({ timeout: 2_000 });
    checkFigure({
      what: 'dashboard: a killed gateway shows as lost',
      value: performance.now() - killedAt,
      unit: 'ms',
      atMost: 2_000,
    });
    await shown('Connected').waitFor({ timeout: 30_000 });
    checkFigure({
      what: 'dashboard: connected again after kill -9',
      value: performance.now() - killedAt,
      unit: 'ms',
      atMost: 30_000,
    });
    await waitForEnd(runId);
    await expectEachOnce();
    expectNoneAgain(sockets);
    const states = page.getByRole('region', { name: 'Nodes of the run' }).locator('tbody td:nth-child(2)');
    await waitForValue('the shown end', async () =>
      (await states.allInnerTexts()).every((text) => text.trim() === 'completed') ? true : undefined,
    );
    await expectRows();
  });

  it('without a sign of it, as with Wi-Fi off, shows in 2 s, and brings what it missed once', async () => {
    const { page } = world;
    await shown('Connected').waitFor();
    const sockets = received.length;
    link.cut();
    const cutAt = performance.now();
    const runId = await startRun();
    await shown('Connection lost').waitFor({ timeout: 4_000 });
    checkFigure({
      what: 'dashboard: a silent network shows as lost',
      value: performance.now() - cutAt,
      unit: 'ms',
      atMost: 2_000,
    });
    await waitForEnd(runId);
    await letTimePass(Math.max(0, OFFLINE_MS - (performance.now() - cutAt)));
    link.heal();
    await shown('Connected').waitFor({ timeout: 40_000 });
    await expectEachOnce();
    expectNoneAgain(sockets);
    await expectRows();
    await page.context().setOffline(true);
    await shown('Connection lost').waitFor({ timeout: 2_000 });
    await page.context().setOffline(false);
    await shown('Connected').waitFor();
    await waitForEnd(await startRun());
    await expectEachOnce();
  });
});
