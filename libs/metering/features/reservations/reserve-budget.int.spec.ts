import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import {
  NO_LIMITS,
  callAborted,
  callCompleted,
  callStarted,
  openMetering,
} from '../metering-fixtures.spec.js';

let metering: Awaited<ReturnType<typeof openMetering>>;
beforeAll(async () => {
  metering = await openMetering();
});
afterAll(() => metering.close());
beforeEach(() => {
  metering.clock.time = Date.parse('2026-11-21T10:00:00.000Z');
});

const sumOfBounds = async (sessionId: string) => {
  const { rows } = await metering.admin.query<{ tokens: string; calls: string }>(
    `select coalesce(sum((data->>'tokens')::bigint), 0) as tokens, count(*) as calls from events
     where type = 'BudgetReserved' and data->>'sessionId' = $1`,
    [sessionId],
  );
  return { tokens: Number(rows[0]?.tokens), calls: Number(rows[0]?.calls) };
};

describe('reserving', () => {
  it('applies the limits of each workspace, and counts each workspace alone', async () => {
    const limitsOf = (workspace: string) => ({
      ...NO_LIMITS,
      ...(workspace === 'acme' ? { session: 600, daily: 1_200 } : { session: 10_000 }),
    });
    const { reserve, read } = metering.start({ limitsOf });
    const [acme, globex] = ['acme', 'globex'].map((workspace) => async (count: number) => {
      const sessionId = randomUUID();
      const calls = Array.from({ length: count }, () => reserve(metering.request({ workspace, sessionId })));
      return (await Promise.all(calls)).map((reply) => (reply.granted ? 'granted' : reply.scope));
    }) as [(count: number) => Promise<string[]>, (count: number) => Promise<string[]>];

    // One batch with commands of both workspaces. Each call reserves 500 tokens.
    const [ofAcme, ofGlobex] = await Promise.all([acme(2), globex(4)]);
    expect(ofAcme.sort()).toEqual(['granted', 'session']);
    expect(ofGlobex).toEqual(['granted', 'granted', 'granted', 'granted']);
    expect([...(await acme(1)), ...(await acme(1))]).toEqual(['granted', 'day']);

    const dayOf = async (workspace: string) => (await read({ workspace })).find(({ kind }) => kind === 'day');
    expect(await dayOf('acme')).toMatchObject({ limitTokens: 1_200, reservedTokens: 1_000 });
    expect(await dayOf('globex')).toMatchObject({ limitTokens: null, reservedTokens: 2_000 });
  });

  it('appends one event with all scopes and their limits, and reserves the bound in each', async () => {
    const { reserve, read } = metering.start({
      limits: { session: 10_000, monthlyMicroUsd: 5_000_000 },
      priceOf: () => ({ inputMicroUsdPerMtok: 3_000_000, outputMicroUsdPerMtok: 15_000_000 }),
    });
    const request = metering.request();
    await expect(reserve(request)).resolves.toEqual({
      granted: true,
      reservationId: request.reservationId,
      maxOutputTokens: 400,
      price: { inputMicroUsdPerMtok: 3_000_000, outputMicroUsdPerMtok: 15_000_000 },
    });
    const events = await metering.budgetEvents(request.reservationId);
    expect(events).toMatchObject([
      {
        type: 'BudgetReserved',
        category: 'budget',
        metadata: { service: 'metering' },
        data: {
          tokens: 500,
          microUsd: 6_300,
          scopes: [
            {
              kind: 'session',
              key: `session/${request.sessionId}`,
              limitTokens: 10_000,
              limitMicroUsd: null,
            },
            { kind: 'day', key: 'day/2026-11-21', limitTokens: null, limitMicroUsd: null },
            { kind: 'month', key: 'month/2026-11', limitTokens: null, limitMicroUsd: 5_000_000 },
          ],
        },
      },
    ]);
    const scopes = await read({ workspace: 'default', sessionId: request.sessionId });
    expect(scopes[0]).toEqual({
      kind: 'session',
      key: `session/${request.sessionId}`,
      limitTokens: 10_000,
      limitMicroUsd: null,
      limitFrom: 'configuration',
      reservedTokens: 500,
      settledTokens: 0,
      reservedMicroUsd: 6_300,
      settledMicroUsd: 0,
      frozen: false,
    });
  });

  it('refuses with the promised text and writes nothing', async () => {
    const { reserve, settle } = metering.start({ limits: { session: 10_000 } });
    const first = metering.request({ inputBound: 9_000, maxOutputTokens: 500 });
    await reserve(first);
    await settle({
      workspace: 'default',
      reservationId: first.reservationId,
      outcome: { kind: 'used', inputTokens: 9_000, outputTokens: 500, estimated: false },
    });
    const second = metering.request({ sessionId: first.sessionId, attempt: 2, inputBound: 300 });
    await expect(reserve(second)).resolves.toMatchObject({
      granted: false,
      scope: 'session',
      used: 9_500,
      limit: 10_000,
      message: 'token budget exceeded (session: 9500/10000)',
    });
    expect(await metering.budgetEvents(second.reservationId)).toEqual([]);
  });

  it('admits 63 of 64 concurrent calls over two processes when the limit is one call short', async () => {
    const limits = { session: 63 * 500 };
    const processes = [metering.start({ limits }), metering.start({ limits })];
    const sessionId = randomUUID();
    const replies = await Promise.all(
      Array.from({ length: 64 }, (_, i) =>
        processes[i % 2]!.reserve(metering.request({ sessionId, attempt: i + 1 })),
      ),
    );
    expect(replies.filter((reply) => reply?.granted)).toHaveLength(63);
    expect(await sumOfBounds(sessionId)).toEqual({ tokens: 63 * 500, calls: 63 });
    const { balances } = await metering.rows();
    expect(balances.find((row) => row['scope_key'] === `session/${sessionId}`)).toMatchObject({
      reserved_tokens: String(63 * 500),
    });
  });

  it('decides on the rows when another process changed them after they were cached', async () => {
    const { reserve, read } = metering.start({ limits: { session: 10_000 } });
    const first = metering.request();
    await expect(reserve(first)).resolves.toMatchObject({ granted: true });
    const key = `session/${first.sessionId}`;
    const spend = 'update budget_balances set settled_tokens = settled_tokens + 9000 where scope_key = $1';
    await metering.admin.query(spend, [key]);
    const second = metering.request({ sessionId: first.sessionId, attempt: 2, inputBound: 600 });
    await expect(reserve(second)).resolves.toMatchObject({ granted: false, used: 9_500, limit: 10_000 });
    const third = metering.request({ sessionId: first.sessionId, attempt: 3, inputBound: 10 });
    await expect(reserve(third)).resolves.toMatchObject({ granted: true, maxOutputTokens: 400 });
    expect((await read({ workspace: 'default', sessionId: first.sessionId }))[0]).toMatchObject({
      reservedTokens: 910,
      settledTokens: 9_000,
    });
    await metering.admin.query(
      'update budget_balances set settled_tokens = settled_tokens - 9000 where scope_key = $1',
      [key],
    );
  });

  it('makes one reservation for one id that two processes request concurrently', async () => {
    const processes = [metering.start(), metering.start()];
    const request = metering.request();
    const replies = await Promise.all(
      Array.from({ length: 10 }, (_, i) => processes[i % 2]!.reserve(request)),
    );
    expect(new Set(replies.map((reply) => JSON.stringify(reply))).size).toBe(1);
    expect(await sumOfBounds(request.sessionId)).toEqual({ tokens: 500, calls: 1 });
  });

  it('returns the same grant after a crash between the commit and the response', async () => {
    const request = metering.request({ minOutputTokens: 1 });
    const limits = { session: 300 };
    const first = await metering.start({ limits }).reserve(request);
    expect(first).toMatchObject({ granted: true, maxOutputTokens: 200 });
    await expect(metering.start({ limits }).reserve(request)).resolves.toEqual(first);
    expect(await sumOfBounds(request.sessionId)).toEqual({ tokens: 300, calls: 1 });
  });

  it('finds its own commit when the response was lost, with and without the cache', async () => {
    const toLose = new Set(['budget_commit', 'commit']);
    const reset = Object.assign(new Error('reset'), { code: 'ECONNRESET' });
    type Callback = (error: Error | null, result: unknown) => void;
    // The server commits, and the connection breaks before the answer arrives.
    const losing = (client: pg.PoolClient) => (query: { name?: string } | string, callback?: Callback) => {
      const isLost = (): boolean => toLose.delete(typeof query === 'string' ? query : (query.name ?? ''));
      const send = client.query.bind(client) as (...args: unknown[]) => Promise<unknown>;
      if (callback)
        return send(query, (error: Error | null, result: unknown) =>
          callback(isLost() ? reset : error, result),
        );
      return send(query).then((result) => {
        if (isLost()) throw reset;
        return result;
      });
    };
    const wrapPool = (pool: pg.Pool): pg.Pool =>
      new Proxy(pool, {
        get: (target, key) => {
          if (key !== 'connect') return Reflect.get(target, key, target) as unknown;
          return async (callback?: Parameters<pg.Pool['connect']>[0]) => {
            // Reads of single statements are not lost.
            if (callback) return target.connect(callback);
            const client = await target.connect();
            return new Proxy(client, {
              get: (inner, name) => {
                const value = Reflect.get(inner, name, inner) as unknown;
                if (name !== 'query')
                  return typeof value === 'function' ? (value.bind(inner) as unknown) : value;
                return losing(inner);
              },
            });
          };
        },
      });
    const request = metering.request();
    await expect(metering.start({ wrapPool }).reserve(request)).resolves.toMatchObject({ granted: true });
    expect(toLose.size).toBe(0);
    expect(await sumOfBounds(request.sessionId)).toEqual({ tokens: 500, calls: 1 });
  });

  it('begins a new day at midnight UTC and charges a call to the day of its admission', async () => {
    metering.clock.time = Date.parse('2026-11-30T23:59:59.999Z');
    const { reserve, settle, read } = metering.start({ limits: { daily: 500 } });
    const before = metering.request();
    await expect(reserve(before)).resolves.toMatchObject({ granted: true });
    await expect(reserve(metering.request())).resolves.toMatchObject({
      granted: false,
      message: 'token budget exceeded (day: 500/500)',
      resetsAt: '2026-12-01T00:00:00.000Z',
    });
    metering.clock.time += 1;
    await expect(reserve(metering.request())).resolves.toMatchObject({ granted: true });
    const outcome = { kind: 'used', inputTokens: 100, outputTokens: 100, estimated: false } as const;
    await settle({ workspace: 'default', reservationId: before.reservationId, outcome });
    expect(await read({ workspace: 'default' })).toMatchObject([
      { key: 'day/2026-12-01', reservedTokens: 500, settledTokens: 0 },
      { key: 'month/2026-12', reservedTokens: 500, settledTokens: 0 },
    ]);
  });

  it('refuses a model without a price under a money limit', async () => {
    const { reserve } = metering.start({ limits: { sessionMicroUsd: 1_000_000 } });
    await expect(reserve(metering.request())).resolves.toMatchObject({
      granted: false,
      reason: 'unknown_price',
      message: expect.stringContaining('no price is set for scripted/echo'),
    });
  });

  it('keeps workspaces apart', async () => {
    const { reserve } = metering.start({ limits: { daily: 100_000 } });
    metering.clock.time = Date.parse('2027-01-05T10:00:00.000Z');
    await reserve(metering.request({ workspace: 'other' }));
    const { rows } = await metering.admin.query<{ workspace: string }>(
      "select workspace from budget_balances where scope_key = 'day/2027-01-05'",
    );
    expect(rows).toEqual([{ workspace: 'other' }]);
  });

  it('refuses as transient when too many calls wait', async () => {
    const { reserve } = metering.start({ options: { maxQueued: 2, maxBatch: 1 } });
    // The first call waits for the balances, so that the others wait for it.
    const client = await metering.admin.connect();
    await client.query('begin');
    await client.query('lock table budget_balances in exclusive mode');
    const asking = Array.from({ length: 6 }, () => reserve(metering.request()));
    await expect(Promise.race(asking)).rejects.toMatchObject({ code: 'METERING.BUSY' });
    await client.query('rollback');
    client.release();
    const asked = await Promise.allSettled(asking);
    const refused = asked.filter((one) => one.status === 'rejected');
    expect(refused.length).toBeGreaterThan(0);
    for (const { reason } of refused)
      expect(reason).toMatchObject({ kind: 'transient', code: 'METERING.BUSY' });
    expect(asked.filter((one) => one.status === 'fulfilled').length).toBeGreaterThanOrEqual(2);
  });
});

describe('a refusal', () => {
  it('is withdrawn when the log shows that an open call ended below its bound', async () => {
    const { reserve } = metering.start({ limits: { session: 800 } });
    const first = metering.request();
    await reserve(first);
    await metering.sessionSays(first.sessionId, callStarted(first), callCompleted(first, 50, 50));
    const second = metering.request({ sessionId: first.sessionId, attempt: 2 });
    await expect(reserve(second)).resolves.toMatchObject({ granted: true });
    expect(await metering.budgetEvents(first.reservationId)).toMatchObject([
      { type: 'BudgetReserved' },
      { type: 'BudgetSettled', data: { inputTokens: 50, outputTokens: 50 } },
    ]);
  });

  it('releases a call that never reached the provider', async () => {
    const { reserve } = metering.start({ limits: { session: 800 } });
    const first = metering.request();
    await reserve(first);
    await metering.sessionSays(first.sessionId, callStarted(first), callAborted(first, false));
    await expect(
      reserve(metering.request({ sessionId: first.sessionId, attempt: 2 })),
    ).resolves.toMatchObject({
      granted: true,
    });
  });

  it('remains while the call is running', async () => {
    const { reserve } = metering.start({ limits: { session: 800 } });
    const first = metering.request({ attempt: 7 });
    await reserve(first);
    // An older attempt's end is not this one's.
    const older = { ...first, attempt: 6, reservationId: randomUUID() };
    await metering.sessionSays(first.sessionId, callCompleted(older, 1, 1), callStarted(first));
    await expect(
      reserve(metering.request({ sessionId: first.sessionId, attempt: 8 })),
    ).resolves.toMatchObject({
      granted: false,
      message: 'token budget exceeded (session: 500/800)',
      reserved: 500,
    });
  });

  it('finds an outcome early in a long session', async () => {
    const { reserve } = metering.start({ limits: { session: 800 } });
    const first = metering.request();
    await reserve(first);
    await metering.sessionSays(first.sessionId, callStarted(first), callCompleted(first, 10, 10));
    const later = (attempt: number) => callStarted({ ...first, attempt, reservationId: randomUUID() });
    await metering.sessionSays(first.sessionId, ...Array.from({ length: 200 }, (_, i) => later(i + 2)));
    await expect(
      reserve(metering.request({ sessionId: first.sessionId, attempt: 300 })),
    ).resolves.toMatchObject({
      granted: true,
    });
  });
});
