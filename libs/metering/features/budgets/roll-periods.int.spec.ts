import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { renderMetrics } from '@antiphon/observability';
import { NO_LIMITS, WORKSPACE, callCompleted, callStarted, openMetering } from '../metering-fixtures.spec.js';
import { RollBudgetPeriods } from '../reservations/operate-budgets.handler.js';
import { observeBudgets } from './read-budgets.handler.js';

let metering: Awaited<ReturnType<typeof openMetering>>;
beforeAll(async () => {
  metering = await openMetering();
});
afterAll(() => metering.close());

it('settles the day that is over and leaves the new one unchanged', async () => {
  const { reserve, read, pool, endReservations } = metering.start();
  const { clock } = metering;
  const handler = new RollBudgetPeriods(pool, clock, endReservations);
  const roll = () => handler.handle({});
  const yesterday = metering.request({ expiresAt: '2026-11-23T00:00:00.000Z' });
  await reserve(yesterday);
  // The outcome is in the log, and metering got no request.
  await metering.sessionSays(yesterday.sessionId, callStarted(yesterday), callCompleted(yesterday, 30, 3));
  expect(await roll()).toEqual({ ended: 0, periods: ['day/2026-11-20'] });

  clock.time = Date.parse('2026-11-22T00:01:00.000Z');
  const today = metering.request({ expiresAt: '2026-11-23T00:00:00.000Z' });
  await reserve(today);
  await metering.sessionSays(today.sessionId, callStarted(today), callCompleted(today, 1, 1));
  expect(await roll()).toEqual({ ended: 1, periods: ['day/2026-11-21'] });
  expect(await roll()).toEqual({ ended: 0, periods: ['day/2026-11-21'] });
  const [day, month] = (await read({ workspace: WORKSPACE })).filter(({ kind }) => kind !== 'session');
  expect([day?.settledTokens, month?.settledTokens]).toEqual([0, 33]);

  clock.time = Date.parse('2026-12-01T00:01:00.000Z');
  expect((await roll()).periods).toEqual(['day/2026-11-30', 'month/2026-11']);
});

it('reports the periods of the workspaces that spent most, each with its own limits, and the default one', async () => {
  const limitsOf = (workspace: string) => ({ ...NO_LIMITS, daily: workspace === 'acme' ? 50_000 : null });
  const process = metering.start({ limitsOf });
  metering.clock.time = Date.parse('2027-01-05T10:00:00.000Z');
  const spending = { acme: 300, globex: 200, small: 10 };
  for (const [workspace, tokens] of Object.entries(spending)) {
    const request = metering.request({ workspace, expiresAt: '2027-01-05T11:00:00.000Z' });
    await process.reserve(request);
    const { reservationId } = request;
    const outcome = { kind: 'used', inputTokens: tokens, outputTokens: 0, estimated: false } as const;
    await process.ledger.submit(workspace, { type: 'Settle', reservationId, outcome });
  }
  const all = await process.readBudgets.periods();
  expect(all.map(({ workspace }) => workspace).sort()).toEqual(['acme', 'default', 'globex', 'small']);
  const most = await process.readBudgets.periods(2);
  expect(most.map(({ workspace }) => workspace).sort()).toEqual(['acme', 'default', 'globex']);
  const stop = observeBudgets(process.readBudgets);
  const { text } = await renderMetrics();
  stop();
  const values = text.split('\n').filter((line) => /^antiphon_budget_tokens.*"(settled|limit)"/.test(line));
  expect(values).toEqual(
    expect.arrayContaining([
      'antiphon_budget_tokens{workspace="acme",scope="day",state="limit"} 50000',
      'antiphon_budget_tokens{workspace="acme",scope="day",state="settled"} 300',
      'antiphon_budget_tokens{workspace="default",scope="day",state="settled"} 0',
      'antiphon_budget_tokens{workspace="small",scope="month",state="settled"} 10',
    ]),
  );
});
