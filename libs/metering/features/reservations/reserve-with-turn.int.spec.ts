import { afterAll, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { v5 } from 'uuid';
import { sessionLease, sessionStream } from '@antiphon/contracts/agent';
import type { ReserveBudgetRequest } from '@antiphon/contracts/metering';
import { createPool } from '@antiphon/database';
import { createLeaseStore, createPostgresEventStore, verifyChain } from '@antiphon/event-store';
import type { AppendRequest, EventStore } from '@antiphon/event-store';
import type { JsonObject } from '@antiphon/kernel';
import { rebuildBalances } from '../budgets/rebuild-balances.js';
import { until } from '@antiphon/testing';
import { callCompleted, callStarted, openMetering } from '../metering-fixtures.spec.js';

jest.setTimeout(Number(process.env['ANTIPHON_ROUNDS'] ?? 0) * 2_000 + 60_000);

const AGENTS = 4;
const CALLS = 64;
/** The nightly run has 100. */
const ROUNDS = Number(process.env['ANTIPHON_ROUNDS'] ?? 3);

let metering: Awaited<ReturnType<typeof openMetering>>;
let stores: ReturnType<typeof createPostgresEventStore>[];
let pools: ReturnType<typeof createPool>[];
let leases: ReturnType<typeof createLeaseStore>;
beforeAll(async () => {
  metering = await openMetering();
  pools = Array.from({ length: AGENTS }, () =>
    createPool({ url: metering.urlFor('agent'), applicationName: 'spec-agents', max: 3 }),
  );
  stores = pools.map((pool) => createPostgresEventStore(pool));
  leases = createLeaseStore(pools[0]!);
});
beforeEach(() => {
  metering.clock.time = Date.now();
});
afterAll(async () => {
  await Promise.all(stores.map((store) => store.close()));
  await Promise.all(pools.map((pool) => pool.end()));
  await metering.close();
});

const price = { inputMicroUsdPerMtok: 3_000_000, outputMicroUsdPerMtok: 15_000_000 };
const LIFETIME_MS = 300_000;

const askOf = (call: ReserveBudgetRequest): JsonObject => ({
  ...{ reservationId: call.reservationId, eventId: v5('BudgetReserved ', call.reservationId) },
  ...{ agentId: call.agentId, agents: [...(call.agents ?? [call.agentId])], sessionKey: call.sessionKey },
  ...(call.caller === undefined ? {} : { caller: call.caller }),
  ...{ inputBound: call.inputBound, maxOutputTokens: call.maxOutputTokens, lifetimeMs: LIFETIME_MS },
});

/** Returns the append that begins a call and asks for its reservation, as a driver sends it. */
const startOf = (call: ReserveBudgetRequest, more: Partial<AppendRequest> = {}): AppendRequest => {
  const { type, data } = callStarted(call);
  const event = { eventId: randomUUID(), type, schemaVersion: 1, data: data as JsonObject };
  const metadata = { correlationId: 'spec', service: 'agent', epoch: 1 };
  return {
    workspace: call.workspace,
    streams: [
      {
        streamId: sessionStream(call.sessionId),
        expectedVersion: 'any',
        events: [{ ...event, metadata }],
      },
    ],
    fence: { lease: sessionLease(call.sessionId), epoch: 1 },
    extension: { reserve: askOf(call) },
    ...more,
  };
};

const hold = async ({ workspace, sessionId }: ReserveBudgetRequest): Promise<void> => {
  const { acquired } = await leases.acquire(workspace, sessionLease(sessionId), 'spec', 3_600_000);
  if (!acquired) throw new Error('the lease of a new session is free');
};
const begin = async (
  call: ReserveBudgetRequest,
  more?: Partial<AppendRequest>,
  store: EventStore = stores[0]!,
) => {
  await hold(call);
  return store.append(startOf(call, more));
};
const eventsOf = ({ reservationId }: ReserveBudgetRequest) => metering.budgetEvents(reservationId);
const settleOf = ({ reservationId }: ReserveBudgetRequest): JsonObject => ({
  settle: { reservationId, eventId: v5('BudgetSettled ', reservationId) },
});
/** Metering writes the rules of this model, as it does with the first call that it admits. */
const tellRules = ({ ruleStore }: ReturnType<typeof metering.start>, model: string) =>
  ruleStore.remember({ workspace: 'default', provider: 'scripted', model });

/** Hides what differs between two reservations of one kind. */
const shapeOf = async (call: ReserveBudgetRequest) => {
  const [event] = await eventsOf(call);
  const text = JSON.stringify(event?.data).replaceAll(call.reservationId, '<id>');
  const { reservedAt, expiresAt, ...data } = JSON.parse(
    text.replaceAll(call.sessionId, '<session>').replaceAll(call.turnId, '<turn>'),
  ) as Record<string, unknown>;
  return { ...event, data, times: [reservedAt, expiresAt].map((time) => typeof time) };
};

describe('the commit that begins a call', () => {
  it('reserves its bound with the facts and rows that metering would write', async () => {
    const process = metering.start({
      limits: { session: 9_000, daily: 900_000_000, dailyMicroUsd: 1e12 },
      priceOf: () => price,
    });
    await process.setLimit('parent', 50_000, 7_000_000);
    const one = { model: 'known', agents: ['child', 'parent'], agentId: 'child', caller: 'key/"ü"\n' };
    const [asked, own] = [metering.request(one), metering.request(one)];
    await tellRules(process, 'known');
    await process.reserve(asked);
    const { extension, lastPosition } = await begin(own);
    const events = await eventsOf(own);
    expect(extension).toEqual({ category: 'budget', reserved: events[0]?.data });
    expect(events).toMatchObject([
      {
        ...{ type: 'BudgetReserved', position: lastPosition + 1, streamVersion: 1 },
        ...{ eventId: v5('BudgetReserved ', own.reservationId), metadata: { service: 'agent', epoch: 1 } },
      },
    ]);
    expect(verifyChain(events)).toMatchObject({ isIntact: true, version: 1 });
    const shapes = [await shapeOf(asked), await shapeOf(own)];
    expect(shapes[1]?.data).toEqual(shapes[0]?.data);
    expect(shapes[1]?.times).toEqual(shapes[0]?.times);
    const end = { ...startOf(own), extension: settleOf(own) };
    const { type, data } = callCompleted(own, 60, 30);
    const completed = {
      ...end.streams[0]!.events[0]!,
      eventId: randomUUID(),
      type,
      data: data as JsonObject,
    };
    const settled = await stores[0]!.append({
      ...end,
      streams: [{ ...end.streams[0]!, events: [completed] }],
    });
    expect(settled.extension).toMatchObject({ settled: { inputTokens: 60, microUsd: 630 } });
    expect(verifyChain(await eventsOf(own))).toMatchObject({ isIntact: true, version: 2 });
    const live = await metering.rows();
    await rebuildBalances(process.pool);
    const rebuilt = await metering.rows();
    expect(rebuilt.reservations).toEqual(live.reservations);
    const isUsed = (row: Record<string, unknown>): boolean => row['scope_key'] !== 'agent/child';
    expect(rebuilt.balances.filter(isUsed)).toEqual(live.balances.filter(isUsed));
  });

  it('reserves input at its dearest price, with the prices that metering would record', async () => {
    const cached = { cacheReadMicroUsdPerMtok: 300_000, cacheWriteMicroUsdPerMtok: 3_750_000 };
    for (const [model, more] of [
      ['cached', cached],
      ['cached-1h', { ...cached, cacheWrite1hMicroUsdPerMtok: 6_000_000 }],
      ['cached-cheap', { cacheReadMicroUsdPerMtok: 0 }],
    ] as const) {
      const process = metering.start({ priceOf: () => ({ ...price, ...more }) });
      const [asked, own] = [metering.request({ model }), metering.request({ model })];
      await tellRules(process, model);
      await process.reserve(asked);
      await begin(own);
      const shapes = [await shapeOf(asked), await shapeOf(own)];
      expect(shapes[1]?.data).toEqual(shapes[0]?.data);
      expect(verifyChain(await eventsOf(own))).toMatchObject({ isIntact: true, version: 1 });
    }
  });

  it.each([1, 0, -1])(
    'admits a call that costs nothing at a limit of money, less %d micro-USD',
    async (left) => {
      const free = { inputMicroUsdPerMtok: 0, outputMicroUsdPerMtok: 0 };
      const model = randomUUID();
      const priceOf = (_provider: string, name: string) => (name === model ? free : price);
      const sessionId = randomUUID();
      const dear = metering.request({ model: 'dear', sessionId, inputBound: 100, maxOutputTokens: 100 });
      const spent = 100 * 3 + 100 * 15;
      const first = metering.start({ limits: { sessionMicroUsd: spent }, priceOf });
      await expect(first.reserve(dear)).resolves.toMatchObject({ granted: true });
      const second = metering.start({ limits: { sessionMicroUsd: spent + left }, priceOf });
      await tellRules(second, model);
      const [own, asked] = [2, 3].map((attempt) => metering.request({ model, sessionId, attempt }));
      expect((await begin(own!)).extension).toBeDefined();
      await expect(second.reserve(asked!)).resolves.toMatchObject({ granted: true });
      const again = metering.request({ model: 'dear', sessionId, attempt: 4 });
      await expect(second.reserve(again)).resolves.toMatchObject({ granted: false, reason: 'over_limit' });
    },
  );

  it('admits several calls of a batch on what the earlier ones left', async () => {
    const process = metering.start({ limits: { session: 1_200 } });
    await tellRules(process, 'batch');
    const sessionId = randomUUID();
    const calls = [1, 2, 3].map((attempt) => metering.request({ model: 'batch', sessionId, attempt }));
    await hold(calls[0]!);
    const [first, ...streams] = calls.map((call) => startOf(call));
    // One commit has one call of a session; here three commits of one session follow at once.
    const results = [await stores[0]!.append(first!)];
    for (const stream of streams) results.push(await stores[0]!.append(stream));
    expect(results.map(({ extension }) => extension !== undefined)).toEqual([true, true, false]);
  });

  it('uses limits that were set at run time', async () => {
    const process = metering.start();
    await tellRules(process, 'set');
    const set = { workspace: 'default', scope: 'session' as const, limitMicroUsd: null, actor: 'spec' };
    await process.limitStore.set({ ...set, limitTokens: 499 });
    expect((await begin(metering.request({ model: 'set' }))).extension).toBeUndefined();
    await process.limitStore.set({ ...set, limitTokens: 500 });
    expect((await begin(metering.request({ model: 'set' }))).extension).toBeDefined();
    await process.limitStore.set({ ...set, limitTokens: null, isRemoved: true });
  });

  type Prepare = (process: ReturnType<typeof metering.start>) => Promise<{
    readonly call?: Partial<ReserveBudgetRequest>;
    readonly more?: (call: ReserveBudgetRequest) => Partial<AppendRequest>;
    /** Metering admits the call then, in its own way. */
    readonly isAdmitted?: boolean;
  }>;
  const LEFT_OUT: readonly (readonly [string, Parameters<typeof metering.start>[0], Prepare])[] = [
    ['the limit of its session', { limits: { session: 499 } }, async () => ({})],
    ['the limit of the day', { limits: { daily: 499 } }, async () => ({})],
    ['the money of the month', { limits: { monthlyMicroUsd: 1 }, priceOf: () => price }, async () => ({})],
    ['a money limit without a price', { limits: { sessionMicroUsd: 1e9 } }, async () => ({})],
    [
      'the limit of an ancestor',
      {},
      async ({ setLimit }) => {
        await setLimit('root-of-it', 499);
        return { call: { agents: ['main', 'root-of-it'] } };
      },
    ],
    ['rules that are not known', {}, async () => ({ call: { model: 'never-seen' }, isAdmitted: true })],
    [
      'rules that are no longer renewed',
      {},
      async () => {
        await metering.admin.query(`update budget_rules set valid_until = now() - interval '1 second'`);
        return { isAdmitted: true };
      },
    ],
    [
      'a reservation of another call',
      {},
      async () => ({
        more: (call) => ({ extension: { reserve: askOf({ ...call, reservationId: randomUUID() }) } }),
        isAdmitted: true,
      }),
    ],
    [
      'a bound that is not a number',
      {},
      async () => ({
        more: (call) => ({ extension: { reserve: { ...askOf(call), inputBound: 'much' } } }),
        isAdmitted: true,
      }),
    ],
  ];
  it.each(LEFT_OUT)('reserves nothing for %s, and metering decides', async (_what, options, prepare) => {
    const process = metering.start(options);
    const model = randomUUID();
    await tellRules(process, model);
    const { call: over, more, isAdmitted = false } = await prepare(process);
    const call = metering.request({ model, minOutputTokens: 400, ...over });
    const result = await begin(call, more?.(call));
    expect(result).toMatchObject({ outcome: 'appended' });
    expect(result.extension).toBeUndefined();
    expect(await eventsOf(call)).toEqual([]);
    expect((await process.reserve(call)).granted).toBe(isAdmitted);
  });

  it('reserves nothing in a frozen scope', async () => {
    const process = metering.start({ limits: { session: 600 } });
    await tellRules(process, 'frozen');
    const sessionId = randomUUID();
    const first = metering.request({ model: 'frozen', sessionId });
    await begin(first);
    await metering.sessionSays(sessionId, callCompleted(first, 9_000, 1));
    await process.endReservations.settleFromLog('default', first.reservationId);
    await process.limitStore.set({
      ...{ workspace: 'default', scope: 'session', limitTokens: 1e9, limitMicroUsd: null, actor: 'spec' },
    });
    const second = metering.request({ model: 'frozen', sessionId, attempt: 2 });
    expect((await stores[0]!.append(startOf(second))).extension).toBeUndefined();
    await expect(process.reserve(second)).resolves.toMatchObject({ granted: false, reason: 'frozen' });
    await process.limitStore.set({
      ...{ workspace: 'default', scope: 'session', limitTokens: null, limitMicroUsd: null, actor: 'spec' },
      isRemoved: true,
    });
  });

  it('reserves nothing if the log refuses it, or for a driver without a lease', async () => {
    const process = metering.start();
    await tellRules(process, 'fenced');
    const [stale, unfenced, twice] = [1, 2, 3].map(() => metering.request({ model: 'fenced' }));
    await hold(stale!);
    const old = startOf(stale!);
    await expect(
      stores[0]!.append({ ...old, streams: [{ ...old.streams[0]!, expectedVersion: 7 }] }),
    ).rejects.toMatchObject({ code: 'LOG.VERSION_CONFLICT' });
    await expect(stores[0]!.append(startOf(unfenced!))).rejects.toMatchObject({ code: 'LOG.FENCED' });
    const { fence: _none, ...free } = startOf(unfenced!);
    expect((await stores[0]!.append(free)).extension).toBeUndefined();
    await hold(twice!);
    const append = startOf(twice!);
    expect((await stores[0]!.append(append)).extension).toBeDefined();
    await expect(stores[0]!.append(append)).resolves.toMatchObject({ outcome: 'duplicate' });
    const events = await Promise.all([stale, unfenced, twice].map((call) => eventsOf(call!)));
    expect(events.map(({ length }) => length)).toEqual([0, 0, 1]);
    // Metering repeats the grant of the commit.
    await expect(process.reserve({ ...twice!, inputBound: 90 })).resolves.toMatchObject({ granted: true });
  });

  it('does not wait for a ledger that is locked', async () => {
    const process = metering.start();
    await tellRules(process, 'locked');
    const call = metering.request({ model: 'locked' });
    const client = await metering.admin.connect();
    await client.query('begin; lock table budget_balances in exclusive mode');
    await expect(begin(call)).resolves.toMatchObject({ outcome: 'appended' });
    await client.query('rollback');
    client.release();
    expect(await eventsOf(call)).toEqual([]);
    await expect(process.reserve(call)).resolves.toMatchObject({ granted: true });
  });

  it('does not wait for each commit of a ledger that stays locked, and is made again afterwards', async () => {
    const process = metering.start();
    await tellRules(process, 'stalled');
    const pool = createPool({ url: metering.urlFor('agent'), applicationName: 'spec-stalled', max: 2 });
    const store = createPostgresEventStore(pool);
    const beginHere = async (): Promise<boolean> =>
      (await begin(metering.request({ model: 'stalled' }), {}, store)).extension !== undefined;
    expect(await beginHere()).toBe(true);
    const client = await metering.admin.connect();
    await client.query('begin; lock table budget_balances in exclusive mode');
    const lockedAt = performance.now();
    const whileLocked: boolean[] = [];
    for (let call = 0; call < 10; call++) whileLocked.push(await beginHere());
    const tookMs = performance.now() - lockedAt;
    await client.query('rollback');
    client.release();
    expect(whileLocked).not.toContain(true);
    // Each of the ten would wait on its own otherwise.
    expect(tookMs).toBeLessThan(10 * 100);
    await until(beginHere);
    await store.close();
    await pool.end();
  });

  it('gives the role no way to the rules or the limits', async () => {
    for (const table of ['budget_rules', 'budget_limits', 'budget_balances', 'budget_reservations'])
      await expect(pools[0]!.query(`select * from ${table}`)).rejects.toMatchObject({ code: '42501' });
    await expect(
      pools[0]!.query('select antiphon_scopes_of_call(null, null, null, null, now())'),
    ).rejects.toMatchObject({ code: '42501' });
  });
});

it(`admits exactly one of ${CALLS} calls of ${AGENTS} processes, in each round with room for one`, async () => {
  const processes = [1, 2].map(() => metering.start());
  await tellRules(processes[0]!, 'race');
  for (let round = 0; round < ROUNDS; round++) {
    const agentId = `race-${round}`;
    // The bound of one call is 500 tokens.
    await processes[0]!.setLimit(agentId, 999);
    const calls = Array.from({ length: CALLS }, () => metering.request({ model: 'race', agentId }));
    await Promise.all(calls.map(hold));
    const admitted = await Promise.all(
      calls.map(async (call, n) => {
        const { extension } = await stores[n % AGENTS]!.append(startOf(call));
        if (extension) return true;
        return (await processes[n % 2]!.reserve({ ...call, epoch: 1 })).granted;
      }),
    );
    expect(admitted.filter(Boolean)).toHaveLength(1);
    const { rows } = await metering.admin.query(
      `select reserved_tokens::int as reserved from budget_balances where scope_key = $1`,
      [`agent/${agentId}`],
    );
    expect(rows).toEqual([{ reserved: 500 }]);
  }
});
