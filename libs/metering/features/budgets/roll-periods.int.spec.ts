import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { WORKSPACE, callCompleted, callStarted, openMetering } from '../metering-fixtures.spec.js';
import { RollBudgetPeriods } from './operate-budgets.handler.js';

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
