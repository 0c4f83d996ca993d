import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { v5 } from 'uuid';
import { sessionLease, sessionStream } from '@antiphon/contracts/agent';
import type { SessionEvent } from '@antiphon/contracts/agent';
import { budgetStream } from '@antiphon/contracts/metering';
import type { Price, ReserveBudgetRequest } from '@antiphon/contracts/metering';
import { verifyChain } from '@antiphon/event-store';
import type { AppendRequest } from '@antiphon/event-store';
import { cacheTokensOf, costMicroUsd } from '@antiphon/kernel';
import type { JsonObject } from '@antiphon/kernel';
import { callAborted, callCompleted, callStarted, openMetering } from '../metering-fixtures.spec.js';
import { rebuildBalances } from '../budgets/rebuild-balances.js';

let metering: Awaited<ReturnType<typeof openMetering>>;
beforeAll(async () => {
  metering = await openMetering();
});
afterAll(() => metering.close());

const price = { inputMicroUsdPerMtok: 3_000_000, outputMicroUsdPerMtok: 15_000_000 };

/** Returns the append that ends a call and asks for its settlement, as a driver sends it. */
const endOf = (
  { sessionId, reservationId }: ReserveBudgetRequest,
  event: SessionEvent,
  more: Partial<AppendRequest> = {},
): AppendRequest => ({
  workspace: 'default',
  streams: [
    {
      streamId: sessionStream(sessionId),
      expectedVersion: 'any',
      events: [
        {
          ...{ eventId: randomUUID(), type: event.type, schemaVersion: 1, data: event.data as JsonObject },
          metadata: { correlationId: 'spec', service: 'agent', epoch: 1 },
        },
      ],
    },
  ],
  extension: { settle: { reservationId, eventId: v5('BudgetSettled ', reservationId) } },
  ...more,
});
const complete = (call: ReserveBudgetRequest, input: number, output: number, more?: Partial<AppendRequest>) =>
  metering.agentStore.append(endOf(call, callCompleted(call, input, output), more));
const begin = async (
  reserve: (request: ReserveBudgetRequest) => Promise<unknown>,
  over: Partial<ReserveBudgetRequest> = {},
) => {
  const call = metering.request(over);
  await reserve(call);
  await metering.sessionSays(call.sessionId, callStarted(call));
  return call;
};
const typesOf = async ({ reservationId }: ReserveBudgetRequest) =>
  (await metering.budgetEvents(reservationId)).map(({ type }) => type);
const usedBy = ({ reservationId }: ReserveBudgetRequest, inputTokens: number, outputTokens: number) => ({
  ...{ workspace: 'default', reservationId },
  outcome: { kind: 'used' as const, inputTokens, outputTokens, estimated: false },
});

describe('the commit that ends a call', () => {
  it('charges its reservation at the recorded price, and nothing settles it again', async () => {
    const { reserve, settleBudget, endReservations, read } = metering.start({ priceOf: () => price });
    const call = await begin(reserve);
    const { extension, lastPosition } = await complete(call, 333, 77);
    const events = await metering.budgetEvents(call.reservationId);
    expect(events).toMatchObject([
      { type: 'BudgetReserved' },
      {
        type: 'BudgetSettled',
        eventId: v5('BudgetSettled ', call.reservationId),
        position: lastPosition + 1,
        data: { inputTokens: 333, outputTokens: 77, microUsd: 2_154, estimated: false },
        metadata: { service: 'agent', epoch: 1 },
      },
    ]);
    expect(extension).toEqual({ category: 'budget', settled: events[1]?.data });
    expect(verifyChain(events)).toMatchObject({ isIntact: true, version: 2 });
    expect((await read({ workspace: 'default', sessionId: call.sessionId }))[0]).toMatchObject({
      ...{ reservedTokens: 0, settledTokens: 410, reservedMicroUsd: 0, settledMicroUsd: 2_154 },
    });
    await expect(settleBudget.handle(usedBy(call, 333, 77))).resolves.toEqual({ status: 'settled' });
    await endReservations.sweep();
    expect(await typesOf(call)).toEqual(['BudgetReserved', 'BudgetSettled']);
  });

  it('computes each charge as costMicroUsd does', async () => {
    const random = (below: number): number => Math.floor(Math.random() * below);
    let prices = price;
    const { reserve } = metering.start({ priceOf: () => prices });
    for (const below of [10, 1_000, 1_000_000, 900_000_000]) {
      prices = { inputMicroUsdPerMtok: random(below * 10), outputMicroUsdPerMtok: random(below * 100) };
      const call = await begin(reserve, { inputBound: below, maxOutputTokens: below, minOutputTokens: 1 });
      const [input, output] = [random(below), random(below)];
      const { extension } = await complete(call, input, output);
      expect({ prices, extension }).toMatchObject({
        extension: {
          settled: { microUsd: costMicroUsd(prices, { inputTokens: input, outputTokens: output }) },
        },
      });
    }
  });

  it('computes each charge of cached input as costMicroUsd does, with the text of the log', async () => {
    const random = (below: number): number => Math.floor(Math.random() * below);
    let prices: Price = price;
    const { reserve, settleBudget } = metering.start({ priceOf: () => prices });
    for (const below of [10, 1_000, 1_000_000, 900_000_000])
      for (const known of [0, 1, 2, 3]) {
        const other = [
          'cacheReadMicroUsdPerMtok',
          'cacheWriteMicroUsdPerMtok',
          'cacheWrite1hMicroUsdPerMtok',
        ];
        const cachePrices = other.slice(0, known).map((name) => [name, random(below * 20)]);
        prices = {
          ...{ inputMicroUsdPerMtok: random(below * 10), outputMicroUsdPerMtok: random(below * 100) },
          ...(Object.fromEntries(cachePrices) as Partial<Price>),
        };
        const call = await begin(reserve, { inputBound: below, maxOutputTokens: below, minOutputTokens: 1 });
        const [read, written] = [random(below >> 1), random(below >> 1)];
        const cached = cacheTokensOf({
          ...{ cacheReadTokens: read, cacheWriteTokens: written, cacheWrite1hTokens: random(written) },
        });
        const usage = { inputTokens: read + written, ...cached, outputTokens: random(below) };
        const end = callCompleted(call, usage.inputTokens, usage.outputTokens);
        const data = { ...end.data, usage: { ...usage, estimated: false } };
        const { extension } = await metering.agentStore.append(endOf(call, { ...end, data } as SessionEvent));
        expect({ prices, extension }).toMatchObject({
          extension: { settled: { ...usage, microUsd: costMicroUsd(prices, usage) } },
        });
        const events = await metering.budgetEvents(call.reservationId);
        expect(verifyChain(events)).toMatchObject({ isIntact: true, version: 2 });
        const outcome = { kind: 'used' as const, ...usage, estimated: false };
        await settleBudget.handle({ workspace: 'default', reservationId: call.reservationId, outcome });
        expect(await typesOf(call)).toEqual(['BudgetReserved', 'BudgetSettled']);
      }
  });

  const LEFT_OUT: readonly (readonly [
    string,
    (call: ReserveBudgetRequest, other: ReserveBudgetRequest) => AppendRequest,
  ])[] = [
    ['uses more tokens than its bound', (call) => endOf(call, callCompleted(call, 400, 200))],
    ['costs more than its bound', (call) => endOf(call, callCompleted(call, 0, 500))],
    [
      'counts more input as cached than there is',
      (call) => {
        const end = callCompleted(call, 10, 1);
        const usage = { inputTokens: 10, cacheReadTokens: 11, outputTokens: 1, estimated: false };
        return endOf(call, { ...end, data: { ...end.data, usage } } as SessionEvent);
      },
    ],
    ['is not completed', (call) => endOf(call, callAborted(call, true))],
    ['is another attempt', (call) => endOf(call, callCompleted({ ...call, attempt: 2 }, 1, 1))],
    [
      'is in another session',
      (call, other) => endOf({ ...call, sessionId: other.sessionId }, callCompleted(call, 1, 1)),
    ],
    ['has another reservation', (call, other) => endOf(call, callCompleted(other, 1, 1))],
    [
      'names no reservation',
      (call) => endOf(call, callCompleted(call, 1, 1), { extension: { settle: { reservationId: 'none' } } }),
    ],
  ];
  it.each(LEFT_OUT)('charges nothing if the call %s', async (_reason, appendOf) => {
    const { reserve } = metering.start({ priceOf: () => price });
    const [call, other] = [await begin(reserve), await begin(reserve)];
    const result = await metering.agentStore.append(appendOf(call, other));
    expect(result).toMatchObject({ outcome: 'appended' });
    expect(result.extension).toBeUndefined();
    expect([await typesOf(call), await typesOf(other)]).toEqual([['BudgetReserved'], ['BudgetReserved']]);
  });

  it('leaves a call over its bound to metering, which freezes the scope', async () => {
    const { reserve, settleBudget } = metering.start({ limits: { session: 600 } });
    const call = await begin(reserve);
    expect((await complete(call, 900, 90)).extension).toBeUndefined();
    await settleBudget.handle(usedBy(call, 900, 90));
    expect(await typesOf(call)).toEqual(['BudgetReserved', 'BudgetSettled', 'BudgetScopeFrozen']);
  });

  it('charges nothing if the reservation is absent, or has ended', async () => {
    const { reserve, endReservations } = metering.start();
    const absent = metering.request();
    expect((await complete(absent, 1, 1)).extension).toBeUndefined();
    const expired = await begin(reserve, { expiresAt: new Date(metering.clock.time - 1).toISOString() });
    await endReservations.sweep();
    expect((await complete(expired, 1, 1)).extension).toBeUndefined();
    await endReservations.settleFromLog('default', expired.reservationId);
    expect(await typesOf(expired)).toEqual(['BudgetReserved', 'BudgetExpired', 'BudgetCorrected']);
  });

  it('charges nothing if the log refuses it, and leaves the others of its batch to metering', async () => {
    const { reserve, settleBudget } = metering.start();
    const [stale, fenced, good] = [await begin(reserve), await begin(reserve), await begin(reserve)];
    const old = endOf(stale, callCompleted(stale, 1, 1));
    const ends = await Promise.allSettled([
      metering.agentStore.append({ ...old, streams: [{ ...old.streams[0]!, expectedVersion: 7 }] }),
      complete(fenced, 1, 1, { fence: { lease: sessionLease(fenced.sessionId), epoch: 9 } }),
      complete(good, 1, 1),
    ]);
    expect(ends.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'fulfilled']);
    expect(await Promise.all([stale, fenced, good].map(typesOf))).toEqual([
      ['BudgetReserved'],
      ['BudgetReserved'],
      ['BudgetReserved'],
    ]);
    await settleBudget.handle(usedBy(good, 1, 1));
    expect(await typesOf(good)).toEqual(['BudgetReserved', 'BudgetSettled']);
  });

  it('charges once when it is sent again', async () => {
    const { reserve } = metering.start();
    const call = await begin(reserve);
    const append = endOf(call, callCompleted(call, 40, 2));
    await metering.agentStore.append(append);
    await expect(metering.agentStore.append(append)).resolves.toMatchObject({ outcome: 'duplicate' });
    expect(await typesOf(call)).toEqual(['BudgetReserved', 'BudgetSettled']);
  });

  it('does not wait for a ledger that is locked', async () => {
    const { reserve, settleBudget } = metering.start();
    const call = await begin(reserve);
    const client = await metering.admin.connect();
    await client.query('begin; lock table budget_balances in exclusive mode');
    await expect(complete(call, 40, 2)).resolves.toMatchObject({ outcome: 'appended' });
    await client.query('rollback');
    client.release();
    expect(await typesOf(call)).toEqual(['BudgetReserved']);
    await settleBudget.handle(usedBy(call, 40, 2));
    expect(await typesOf(call)).toEqual(['BudgetReserved', 'BudgetSettled']);
  });

  it('gives the role no other way into a budget', async () => {
    const { reserve } = metering.start();
    const call = await begin(reserve);
    const event = endOf(call, callCompleted(call, 0, 0)).streams[0]!.events[0]!;
    const forged = { ...event, type: 'BudgetSettled' };
    const streams = [{ streamId: budgetStream(call.reservationId), expectedVersion: 1, events: [forged] }];
    const { extension } = endOf(call, callCompleted(call, 0, 0));
    await expect(
      metering.agentStore.append({ workspace: 'default', streams, ...(extension ? { extension } : {}) }),
    ).rejects.toMatchObject({ code: 'LOG.NOT_OWNER' });
    const { rows } = await metering.admin.query<{ role: string }>(
      `select r.rolname as role from pg_roles r, pg_proc p where rolname like 'antiphon\\_%' and
        (p.proname = 'antiphon_append_one' or (p.proname = 'antiphon_append_extended' and rolname <> 'antiphon_agent'))
        and has_function_privilege(r.oid, p.oid, 'execute') order by 1`,
    );
    expect(rows).toEqual([]);
  });
});

describe('metering next to commits that settle', () => {
  it('reserves in one statement, although its cache does not see them', async () => {
    const names: string[] = [];
    const wrapPool = (pool: pg.Pool): pg.Pool =>
      pool.on('connect', (client) => {
        const send = client.query.bind(client) as (...args: unknown[]) => unknown;
        client.query = ((...args: unknown[]) => {
          const [query] = args as [string | { readonly name?: string; readonly text: string }];
          names.push(typeof query === 'string' ? query : (query.name ?? query.text));
          return send(...args);
        }) as typeof client.query;
      });
    const { reserve } = metering.start({ limits: { session: 10_000_000 }, wrapPool });
    await complete(await begin(reserve), 10, 10);
    names.length = 0;
    for (let i = 0; i < 5; i++) await complete(await begin(reserve), 10, 10);
    expect(names.filter((name) => name === 'budget_commit')).toHaveLength(5);
    expect(names).not.toContain('budget_lock');
  });

  it('ends each reservation once, and never exceeds a limit, in any order of commits', async () => {
    const limits = { session: 3_000 };
    const processes = [1, 2].map(() => metering.start({ limits, priceOf: () => price }));
    const worker = async (n: number): Promise<void> => {
      const { reserve, settleBudget, endReservations } = processes[n % 2]!;
      const sessionId = randomUUID();
      for (let attempt = 1; attempt <= 12; attempt++) {
        const call = metering.request({ sessionId, attempt, minOutputTokens: 100 });
        if (!(await reserve(call)).granted) continue;
        await metering.sessionSays(sessionId, callStarted(call));
        const usage = [20 * n, attempt % 5 === 0 ? 490 : 30] as const;
        // Settled by the commit, by the request and by the sweep, in any order.
        const ended = complete(call, ...usage);
        const told = settleBudget.handle(usedBy(call, ...usage)).catch(() => undefined);
        await Promise.all([ended, told, attempt % 4 === 0 ? endReservations.sweep() : undefined]);
        await settleBudget.handle(usedBy(call, ...usage));
      }
    };
    await Promise.all(Array.from({ length: 10 }, (_, n) => worker(n)));
    const live = await metering.rows();
    expect(live.reservations.filter(({ status }) => status === 'settled').length).toBeGreaterThan(60);
    await rebuildBalances(processes[0]!.pool);
    const rebuilt = await metering.rows();
    expect(rebuilt.reservations).toEqual(live.reservations);
    const isSpent = (row: Record<string, unknown>): boolean => Number(row['settled_tokens']) > 0;
    expect(rebuilt.balances.filter(isSpent)).toEqual(live.balances.filter(isSpent));
  });
});

it('charges nothing for tokens that no contract allows', async () => {
  const { reserve } = metering.start();
  for (const input of [-5, 1.5]) {
    const call = await begin(reserve);
    expect((await complete(call, input, 1)).extension).toBeUndefined();
    expect(await typesOf(call)).toEqual(['BudgetReserved']);
  }
});
