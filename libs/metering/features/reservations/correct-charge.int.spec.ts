import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { compareProjection } from '@antiphon/event-store';
import type { ReserveBudgetRequest } from '@antiphon/contracts/metering';
import { budgetLedger, budgetUsage } from '../budgets/projections.js';
import { rebuildBalances } from '../budgets/rebuild-balances.js';
import { callAborted, callCompleted, callStarted, openMetering } from '../metering-fixtures.spec.js';
import { CorrectCharge } from './correct-charge.handler.js';

let metering: Awaited<ReturnType<typeof openMetering>>;
beforeAll(async () => {
  metering = await openMetering();
});
afterAll(() => metering.close());

const priceOf = () => ({ inputMicroUsdPerMtok: 1_000_000, outputMicroUsdPerMtok: 2_000_000 });
const start = () => {
  const own = metering.start({ priceOf, limits: { session: 1_000 } });
  return { ...own, charge: new CorrectCharge(own.pool, own.store, own.ledger) };
};

const GENERATION = 'gen-1';
/** An attempt that broke after some text, whose vendor tells the usage later. */
const cut = (call: ReserveBudgetRequest, generationId = GENERATION) => {
  const event = callAborted(call, true);
  return { ...event, data: { ...event.data, generationId } } as typeof event;
};
const figure = (reservationId: string, generationId = GENERATION) => ({
  ...{ workspace: 'default', reservationId, generationId },
  usage: { inputTokens: 60, outputTokens: 20, cacheReadTokens: 40 },
});
const settle = ({ reservationId }: ReserveBudgetRequest) => ({
  ...{ workspace: 'default', reservationId, outcome: { kind: 'unknown' } as const },
});
const ends = async ({ reservationId }: ReserveBudgetRequest) =>
  (await metering.budgetEvents(reservationId)).slice(1);

it('replaces the charge at the bound once, with its cause, however often any process is told', async () => {
  const processes = [start(), start()];
  const { reserve, settleBudget, charge, read, usage } = processes[0]!;
  const call = metering.request({ provider: 'router' });
  await reserve(call);
  await metering.sessionSays(call.sessionId, callStarted(call), cut(call));
  await settleBudget.handle(settle(call));
  const told = Array.from({ length: 8 }, (_, n) =>
    processes[n % 2]!.charge.handle(figure(call.reservationId)),
  );
  const replies = await Promise.all(told);
  expect(replies.filter(({ corrected }) => corrected)).toHaveLength(1);
  await expect(charge.handle(figure(call.reservationId))).resolves.toEqual({ corrected: false });
  await settleBudget.handle(settle(call));
  expect(await ends(call)).toMatchObject([
    { type: 'BudgetSettled', data: { inputTokens: 100, outputTokens: 400, microUsd: 900, estimated: true } },
    {
      type: 'BudgetCorrected',
      data: {
        ...{ inputTokens: 60, outputTokens: 20, cacheReadTokens: 40, microUsd: 100 },
        figure: {
          ...{ generationId: GENERATION, replacedTokens: 500, replacedMicroUsd: 900 },
          scopeKeys: [`session/${call.sessionId}`, 'day/2026-11-21', 'month/2026-11'],
        },
      },
    },
  ]);
  expect((await read({ workspace: 'default', sessionId: call.sessionId }))[0]).toMatchObject({
    ...{ settledTokens: 80, settledMicroUsd: 100, reservedTokens: 0 },
  });
  const { groups = [] } = await usage({ by: 'model' });
  expect(groups.find(({ name }) => name === 'router/echo')).toMatchObject({
    ...{ settledTokens: 80, settledMicroUsd: 100, estimatedTokens: 0 },
  });
});

it('corrects an estimate of a completed call and of an expired reservation', async () => {
  const { reserve, settleBudget, charge, endReservations } = start();
  const [completed, expired] = [metering.request(), metering.request()];
  await Promise.all([reserve(completed), reserve({ ...expired, expiresAt: '2026-11-21T09:59:00.000Z' })]);
  const answer = callCompleted(completed, 90, 30);
  const usage = { inputTokens: 90, outputTokens: 30, estimated: true };
  const estimated = { ...answer, data: { ...answer.data, usage, generationId: GENERATION } };
  await metering.sessionSays(completed.sessionId, callStarted(completed), estimated as typeof answer);
  await metering.sessionSays(expired.sessionId, callStarted(expired));
  await endReservations.sweep();
  await metering.sessionSays(expired.sessionId, cut(expired));
  for (const call of [completed, expired]) {
    await settleBudget.handle(settle(call));
    expect(await charge.handle(figure(call.reservationId))).toEqual({ corrected: true });
  }
  expect((await ends(completed)).map(({ type }) => type)).toEqual(['BudgetSettled', 'BudgetCorrected']);
  expect((await ends(expired)).map(({ type }) => type)).toEqual(['BudgetExpired', 'BudgetCorrected']);
});

it('corrects nothing that the log does not call an estimate', async () => {
  const { reserve, settleBudget, charge } = start();
  const [open, running, exact, other, refused] = Array.from({ length: 5 }, () => metering.request());
  for (const call of [open!, running!, exact!, other!, refused!]) await reserve(call);
  const answer = callCompleted(exact!, 10, 5);
  const known = { ...answer, data: { ...answer.data, generationId: GENERATION } } as typeof answer;
  const rejected = cut(refused!);
  const free = { ...rejected, data: { ...rejected.data, refused: true } } as typeof rejected;
  await metering.sessionSays(open!.sessionId, callStarted(open!), cut(open!));
  await metering.sessionSays(running!.sessionId, callStarted(running!));
  await metering.sessionSays(exact!.sessionId, callStarted(exact!), known);
  await metering.sessionSays(other!.sessionId, callStarted(other!), cut(other!, 'gen-2'));
  await metering.sessionSays(refused!.sessionId, callStarted(refused!), free);
  for (const call of [exact!, other!, refused!]) await settleBudget.handle(settle(call));
  const tell = ({ reservationId }: ReserveBudgetRequest) => charge.handle(figure(reservationId));
  await expect(tell(open!)).rejects.toMatchObject({ code: 'METERING.NOT_SETTLED', kind: 'transient' });
  await expect(tell(running!)).rejects.toMatchObject({ code: 'METERING.NOT_IN_LOG' });
  await expect(tell(other!)).rejects.toMatchObject({ code: 'METERING.NOT_IN_LOG' });
  expect(await tell(exact!)).toEqual({ corrected: false });
  expect(await tell(refused!)).toEqual({ corrected: false });
  expect(await tell(metering.request())).toEqual({ corrected: false });
});

it('leaves rows that a rebuild, and a fold of the past without settled rows, gives too', async () => {
  const own = start();
  await own.usage();
  const before = await metering.rows();
  await rebuildBalances(own.pool);
  expect(await metering.rows()).toEqual(before);
  for (const projection of [budgetLedger, budgetUsage])
    expect(await compareProjection(metering.admin, projection)).toMatchObject({ differing: 0 });
});
