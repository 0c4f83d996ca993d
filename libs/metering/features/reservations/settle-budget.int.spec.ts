import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { NEVER_BEGUN } from '@antiphon/contracts/metering';
import type { CallOutcome } from '@antiphon/contracts/metering';
import { callAborted, callCompleted, callStarted, openMetering } from '../metering-fixtures.spec.js';

let metering: Awaited<ReturnType<typeof openMetering>>;
beforeAll(async () => {
  metering = await openMetering();
});
afterAll(() => metering.close());
beforeEach(() => {
  metering.clock.time = Date.parse('2026-11-21T10:00:00.000Z');
  metering.lines.length = 0;
});

const price = { inputMicroUsdPerMtok: 3_000_000, outputMicroUsdPerMtok: 15_000_000 };
const used = (inputTokens: number, outputTokens: number): CallOutcome => ({
  kind: 'used',
  inputTokens,
  outputTokens,
  estimated: false,
});
const settlement = (reservationId: string, outcome: CallOutcome) => ({
  workspace: 'default',
  reservationId,
  outcome,
});
const types = async (reservationId: string) =>
  (await metering.budgetEvents(reservationId)).map(({ type }) => type);

describe('settling', () => {
  it('charges the exact usage and logs the usage record', async () => {
    const { reserve, settle, read } = metering.start({ priceOf: () => price });
    const request = metering.request();
    await reserve(request);
    await expect(settle(settlement(request.reservationId, used(333, 77)))).resolves.toBe('settled');
    expect(await metering.budgetEvents(request.reservationId)).toMatchObject([
      { type: 'BudgetReserved' },
      {
        type: 'BudgetSettled',
        data: { inputTokens: 333, outputTokens: 77, microUsd: 2_154, estimated: false },
      },
    ]);
    expect((await read({ workspace: 'default', sessionId: request.sessionId }))[0]).toMatchObject({
      reservedTokens: 0,
      settledTokens: 410,
      reservedMicroUsd: 0,
      settledMicroUsd: 2_154,
    });
    expect(metering.lines.filter((line) => line['message'] === 'model call charged')).toMatchObject([
      {
        timestamp: '2026-11-21T10:00:00.000Z',
        session_key: 'main:cli:me:you',
        agent_id: 'main',
        provider: 'scripted',
        model: 'echo',
        input: 333,
        output: 77,
        cost: 0.002154,
        reservationId: request.reservationId,
        estimated: false,
      },
    ]);
  });

  it('charges what the log says, not what the request says', async () => {
    const { reserve, settleBudget } = metering.start();
    const [told, running] = [metering.request(), metering.request()];
    await Promise.all([told, running].map(reserve));
    await metering.sessionSays(told.sessionId, callStarted(told), callCompleted(told, 400, 90));
    await metering.sessionSays(running.sessionId, callStarted(running));
    await settleBudget.handle(settlement(told.reservationId, used(0, 0)));
    expect((await metering.budgetEvents(told.reservationId))[1]).toMatchObject({
      type: 'BudgetSettled',
      data: { inputTokens: 400, outputTokens: 90 },
    });
    for (const outcome of [used(0, 0), { kind: 'not_dispatched', reason: 'forged' } as const])
      await expect(settleBudget.handle(settlement(running.reservationId, outcome))).rejects.toMatchObject({
        code: 'METERING.NOT_IN_LOG',
        kind: 'conflict',
      });
    expect(await types(running.reservationId)).toEqual(['BudgetReserved']);
  });

  it('charges once, however often any process settles', async () => {
    const processes = [metering.start(), metering.start()];
    const request = metering.request();
    await processes[0]!.reserve(request);
    const told = Array.from({ length: 12 }, (_, i) =>
      processes[i % 2]!.settle(settlement(request.reservationId, used(100, i))),
    );
    expect(new Set(await Promise.all(told))).toEqual(new Set(['settled']));
    expect(await types(request.reservationId)).toEqual(['BudgetReserved', 'BudgetSettled']);
    expect(metering.lines.filter((line) => line['message'] === 'model call charged')).toHaveLength(1);
  });

  it('releases only a reservation that no call in the log cites', async () => {
    const { reserve, settle } = metering.start();
    const [begun, unbegun, over] = [metering.request(), metering.request(), metering.request()];
    await Promise.all([begun, unbegun, over].map(reserve));
    await metering.sessionSays(begun.sessionId, callStarted(begun));
    await metering.sessionSays(over.sessionId, callStarted(over), callCompleted(over, 10, 5));
    const release = ({ reservationId }: { reservationId: string }) =>
      settle(settlement(reservationId, { kind: 'not_dispatched', reason: NEVER_BEGUN }));
    await expect(release(begun)).rejects.toMatchObject({ code: 'METERING.CALL_BEGUN', kind: 'conflict' });
    expect(await types(begun.reservationId)).toEqual(['BudgetReserved']);
    await expect(settle(settlement(begun.reservationId, used(10, 5)))).resolves.toBe('settled');
    expect([await release(unbegun), await release(unbegun), await release(over)]).toEqual([
      'released',
      'released',
      'settled',
    ]);
    expect(await release(metering.request())).toBe('missing');
  });

  it('returns missing for an unknown reservation', async () => {
    const { settle } = metering.start();
    await expect(settle(settlement(randomUUID(), used(1, 1)))).resolves.toBe('missing');
  });

  it('releases a call that was not dispatched', async () => {
    const { reserve, settle } = metering.start();
    const request = metering.request();
    await reserve(request);
    const outcome = { kind: 'not_dispatched', reason: 'provider_unreachable' } as const;
    await expect(settle(settlement(request.reservationId, outcome))).resolves.toBe('released');
    await expect(settle(settlement(request.reservationId, used(1, 1)))).resolves.toBe('released');
    await expect(reserve(request)).rejects.toMatchObject({
      kind: 'conflict',
      code: 'METERING.RESERVATION_ENDED',
    });
  });

  it('finds a reservation in any case of its id', async () => {
    const { reserve, settle } = metering.start();
    const request = metering.request();
    await reserve({ ...request, reservationId: request.reservationId.toUpperCase() });
    await expect(settle(settlement(request.reservationId, used(1, 1)))).resolves.toBe('settled');
  });

  it('fails only the command that the log refuses', async () => {
    const { ledger, reserve, pool, store } = metering.start();
    const spoiled = metering.request();
    // Another writer appended the first event of this reservation's stream without the ledger.
    const append = {
      workspace: 'default',
      streams: [
        {
          streamId: `budget-${spoiled.reservationId}`,
          expectedVersion: 0,
          events: [
            {
              eventId: randomUUID(),
              type: 'BudgetReserved',
              schemaVersion: 1,
              data: {},
              metadata: { correlationId: 'spec', service: 'metering' },
            },
          ],
        },
      ],
    };
    await store.append(append);
    const [refused, ...granted] = await Promise.allSettled([
      reserve(spoiled),
      ...Array.from({ length: 5 }, () => reserve(metering.request())),
    ]);
    expect(refused).toMatchObject({ status: 'rejected', reason: { code: 'LOG.VERSION_CONFLICT' } });
    expect(granted).toMatchObject(Array.from({ length: 5 }, () => ({ value: { granted: true } })));
    expect(pool.idleCount).toBeGreaterThan(0);
    await ledger.close();
  });
});

describe('a charge over its bound', () => {
  it('is recorded in full and logged, and the scope continues within its limit', async () => {
    const { reserve, settle } = metering.start({ limits: { session: 10_000 } });
    const first = metering.request();
    await reserve(first);
    await settle(settlement(first.reservationId, used(4_000, 900)));
    expect(await types(first.reservationId)).toEqual(['BudgetReserved', 'BudgetSettled']);
    expect(metering.lines.find((line) => line['level'] === 'warn')).toMatchObject({
      reservationId: first.reservationId,
      boundTokens: 500,
      usedTokens: 4_900,
    });
    const second = metering.request({ sessionId: first.sessionId, attempt: 2 });
    await expect(reserve(second)).resolves.toMatchObject({ granted: true });
    await settle(settlement(second.reservationId, used(4_000, 900)));
    const third = metering.request({ sessionId: first.sessionId, attempt: 3 });
    await expect(reserve(third)).resolves.toMatchObject({
      message: 'token budget exceeded (session: 9800/10000)',
    });
  });

  it('freezes a scope whose limit it breaks, until an operator unfreezes it', async () => {
    const { reserve, settle, read } = metering.start({ limits: { session: 1_000 } });
    const first = metering.request();
    await reserve(first);
    await settle(settlement(first.reservationId, used(100, 1_000)));
    expect(await types(first.reservationId)).toEqual([
      'BudgetReserved',
      'BudgetSettled',
      'BudgetScopeFrozen',
    ]);
    const scopeKey = `session/${first.sessionId}`;
    const [session] = await read({ workspace: 'default', sessionId: first.sessionId });
    expect(session).toMatchObject({ key: scopeKey, frozen: true });
    const raised = metering.start({ limits: { session: 10_000 } });
    const next = metering.request({ sessionId: first.sessionId, attempt: 2 });
    await expect(raised.reserve(next)).resolves.toMatchObject({
      granted: false,
      reason: 'frozen',
      message: expect.stringContaining('budget frozen (session: 1100/10000)'),
    });
    const unfreeze = {
      type: 'Unfreeze',
      scopeKey,
      by: 'operator',
      reason: 'the provider counts thinking',
    } as const;
    await expect(raised.ledger.submit('default', unfreeze)).resolves.toMatchObject({ unfrozen: true });
    await expect(raised.ledger.submit('default', unfreeze)).resolves.toMatchObject({ unfrozen: false });
    await expect(raised.reserve(next)).resolves.toMatchObject({ granted: true });
  });
});

describe('an unsettled reservation', () => {
  const minutes = (n: number) => (metering.clock.time += n * 60_000);

  it('is charged at its bound when it expires, and corrected once when the usage is learnt', async () => {
    const { reserve, settle, endReservations, read } = metering.start();
    minutes(6);
    await endReservations.sweep();
    const request = metering.request();
    await reserve(request);
    await metering.sessionSays(request.sessionId, callStarted(request));
    await expect(endReservations.sweep()).resolves.toBe(0);
    minutes(6);
    await expect(endReservations.sweep()).resolves.toBe(1);
    await expect(endReservations.sweep()).resolves.toBe(0);
    const spent = async () => (await read({ workspace: 'default', sessionId: request.sessionId }))[0];
    expect(await spent()).toMatchObject({ reservedTokens: 0, settledTokens: 500 });
    await expect(settle(settlement(request.reservationId, used(80, 20)))).resolves.toBe('expired_estimated');
    await expect(settle(settlement(request.reservationId, used(1, 1)))).resolves.toBe('expired_estimated');
    expect(await types(request.reservationId)).toEqual([
      'BudgetReserved',
      'BudgetExpired',
      'BudgetCorrected',
    ]);
    expect(await spent()).toMatchObject({ reservedTokens: 0, settledTokens: 100 });
  });

  it('is settled by its outcome in the log', async () => {
    const { reserve, endReservations } = metering.start();
    minutes(6);
    await endReservations.sweep();
    const [completed, failed, lost, unsent] = [0, 0, 0, 0].map(() => metering.request());
    for (const call of [completed, failed, lost, unsent]) await reserve(call!);
    await metering.sessionSays(
      completed!.sessionId,
      callStarted(completed!),
      callCompleted(completed!, 7, 8),
    );
    const usage = { inputTokens: 5, outputTokens: 0, estimated: false };
    await metering.sessionSays(failed!.sessionId, callStarted(failed!), callAborted(failed!, true, usage));
    await metering.sessionSays(lost!.sessionId, callStarted(lost!), callAborted(lost!, true));
    await metering.sessionSays(unsent!.sessionId, callStarted(unsent!), callAborted(unsent!, false));
    minutes(6);
    await expect(endReservations.sweep()).resolves.toBe(4);
    const second = async (reservationId: string) => (await metering.budgetEvents(reservationId))[1];
    expect(await second(completed!.reservationId)).toMatchObject({
      data: { inputTokens: 7, outputTokens: 8 },
    });
    expect(await second(failed!.reservationId)).toMatchObject({ data: { inputTokens: 5, outputTokens: 0 } });
    expect(await second(lost!.reservationId)).toMatchObject({
      type: 'BudgetSettled',
      data: { inputTokens: 100, outputTokens: 400, estimated: true },
    });
    expect(await second(unsent!.reservationId)).toMatchObject({ type: 'BudgetReleased' });
  });

  it('is released when no call cites it: the start that it was asked for was never committed', async () => {
    const { reserve, settle, endReservations } = metering.start();
    minutes(6);
    await endReservations.sweep();
    const [alone, overtaken] = [metering.request(), metering.request({ attempt: 2 })];
    for (const call of [alone, overtaken]) await reserve(call);
    const other = metering.request({ sessionId: overtaken.sessionId, attempt: 2 });
    await metering.sessionSays(
      overtaken.sessionId,
      callStarted({ ...other, attempt: 1 }),
      callStarted(other),
    );
    // Its attempt has begun with another one; the start of the other may still be in flight.
    await expect(endReservations.sweep()).resolves.toBe(1);
    expect(await types(overtaken.reservationId)).toEqual(['BudgetReserved', 'BudgetReleased']);
    minutes(6);
    await expect(endReservations.sweep()).resolves.toBe(1);
    for (const { reservationId } of [alone, overtaken])
      expect(await types(reservationId)).toEqual(['BudgetReserved', 'BudgetReleased']);
    await expect(settle(settlement(alone.reservationId, used(1, 1)))).resolves.toBe('released');
  });

  it('is charged when its call ran although it had been released', async () => {
    const { reserve, settleBudget, endReservations, read } = metering.start();
    minutes(6);
    await endReservations.sweep();
    const call = metering.request();
    await reserve(call);
    minutes(6);
    await endReservations.sweep();
    await metering.sessionSays(call.sessionId, callStarted(call), callCompleted(call, 30, 12));
    await settleBudget.handle(settlement(call.reservationId, used(0, 0)));
    await settleBudget.handle(settlement(call.reservationId, used(0, 0)));
    expect(await types(call.reservationId)).toEqual(['BudgetReserved', 'BudgetReleased', 'BudgetCorrected']);
    const [session] = await read({ workspace: 'default', sessionId: call.sessionId });
    expect(session).toMatchObject({ reservedTokens: 0, settledTokens: 42 });
  });

  it('is not released when its call starts between the look and the release', async () => {
    let before: () => Promise<void> = () => Promise.resolve();
    const { reserve, endReservations } = metering.start({
      wrapPool: (pool) => {
        const connect = pool.connect.bind(pool) as (...callback: unknown[]) => Promise<pg.PoolClient>;
        // `query` passes a callback; a transaction does not.
        pool.connect = (async (...callback: unknown[]) => {
          const begin = before;
          if (callback.length === 0) before = () => Promise.resolve();
          if (callback.length === 0) await begin();
          return connect(...callback);
        }) as typeof pool.connect;
        return pool;
      },
    });
    minutes(6);
    await endReservations.sweep();
    const call = metering.request();
    await reserve(call);
    minutes(6);
    // The first connection of a transaction after the look: the start commits before it.
    before = async () => void (await metering.sessionSays(call.sessionId, callStarted(call)));
    await endReservations.sweep();
    expect(await types(call.reservationId)).not.toContain('BudgetReleased');
  });

  it('expires by the clock of PostgreSQL when the agent sends a lifetime', async () => {
    const { reserve } = metering.start();
    const past = new Date(metering.clock.time - 3_600_000).toISOString();
    const call = metering.request({ expiresAt: past, lifetimeMs: 60_000 });
    await reserve(call);
    expect((await metering.budgetEvents(call.reservationId))[0]?.data).toMatchObject({
      expiresAt: new Date(metering.clock.time + 60_000).toISOString(),
    });
  });

  it('is ended once by sweeps of two processes', async () => {
    const processes = [metering.start(), metering.start()];
    const calls = Array.from({ length: 20 }, () => metering.request());
    await Promise.all(calls.map((call) => processes[0]!.reserve(call)));
    for (const call of calls) await metering.sessionSays(call.sessionId, callStarted(call));
    minutes(6);
    await Promise.all(processes.map(({ endReservations }) => endReservations.sweep()));
    for (const { reservationId } of calls)
      expect(await types(reservationId)).toEqual(['BudgetReserved', 'BudgetExpired']);
  });
});
