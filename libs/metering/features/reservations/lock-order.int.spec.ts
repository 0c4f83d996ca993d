import { afterAll, beforeAll, expect, it, jest } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { v5 } from 'uuid';
import { sessionLease, sessionStream } from '@antiphon/contracts/agent';
import type { SessionEvent } from '@antiphon/contracts/agent';
import type { ReserveBudgetRequest } from '@antiphon/contracts/metering';
import { createPool } from '@antiphon/database';
import { createLeaseStore, createPostgresEventStore } from '@antiphon/event-store';
import type { AppendRequest, EventStore, Lease } from '@antiphon/event-store';
import type { JsonObject } from '@antiphon/kernel';
import { callCompleted, callStarted, openMetering } from '../metering-fixtures.spec.js';

/** The nightly run has 10 minutes. */
const LOAD_MS = Number(process.env['ANTIPHON_LOCK_ORDER_MS'] ?? 3_000);
const DRIVERS = 8;
const AGENTS = 2;

jest.setTimeout(LOAD_MS + 60_000);

let metering: Awaited<ReturnType<typeof openMetering>>;
let stores: ReturnType<typeof createPostgresEventStore>[];
const pools: ReturnType<typeof createPool>[] = [];
beforeAll(async () => {
  metering = await openMetering();
  // Shorter than the lock timeout of an append, so that a deadlock is counted.
  const { rows } = await metering.admin.query<{ name: string }>('select current_database() as name');
  await metering.admin.query(`alter database "${rows[0]?.name}" set deadlock_timeout = '50ms'`);
  stores = Array.from({ length: AGENTS }, () => {
    const pool = createPool({ url: metering.urlFor('agent'), applicationName: 'spec-agents', max: 3 });
    pools.push(pool);
    return createPostgresEventStore(pool);
  });
});
afterAll(async () => {
  await Promise.all(stores.map((store) => store.close()));
  await Promise.all(pools.map((pool) => pool.end()));
  await metering.close();
});

const eventOf = ({ type, data }: SessionEvent, epoch: number) => ({
  ...{ eventId: randomUUID(), type, schemaVersion: 1, data: data as JsonObject },
  metadata: { correlationId: 'spec', service: 'agent', epoch },
});

/** Appends under the lease of a session, as its driver does. */
const drive = (
  store: EventStore,
  { sessionId }: ReserveBudgetRequest,
  { epoch }: Lease,
  event: SessionEvent,
  extension: Pick<AppendRequest, 'extension'> = {},
) =>
  store.append({
    workspace: 'default',
    streams: [
      { streamId: sessionStream(sessionId), expectedVersion: 'any', events: [eventOf(event, epoch)] },
    ],
    fence: { lease: sessionLease(sessionId), epoch },
    ...extension,
  });

const settleOf = ({ reservationId }: ReserveBudgetRequest) => ({
  extension: { settle: { reservationId, eventId: v5('BudgetSettled ', reservationId) } },
});
const reserveOf = (call: ReserveBudgetRequest) => {
  const { reservationId, agentId, sessionKey, inputBound, maxOutputTokens } = call;
  const eventId = v5('BudgetReserved ', reservationId);
  const ask = { reservationId, eventId, agentId, agents: [agentId], sessionKey, inputBound, maxOutputTokens };
  return { extension: { reserve: { ...ask, lifetimeMs: 300_000 } } };
};

it('never deadlocks: appends that reserve or settle, reservations under leases, renewals, sweeps', async () => {
  const processes = [1, 2].map(() => metering.start({ limits: { session: 1e12, daily: 1e15 } }));
  const following = new AbortController();
  await processes[0]!.ruleStore.remember({ workspace: 'default', provider: 'scripted', model: 'echo' });
  const followed = processes[0]!.ruleStore.follow(following.signal);
  const leases = createLeaseStore(pools[0]!);
  const sessions = Array.from({ length: DRIVERS }, () => randomUUID());
  const held = await Promise.all(
    sessions.map(async (sessionId) => {
      const attempt = await leases.acquire('default', sessionLease(sessionId), 'spec', 3_600_000);
      if (!attempt.acquired) throw new Error('the lease of a new session is free');
      return attempt.lease;
    }),
  );
  const end = performance.now() + LOAD_MS;
  const isOver = (): boolean => performance.now() > end;
  let settled = 0;
  let reserved = 0;
  let asked = 0;
  let calls = 0;
  const driver = async (n: number): Promise<void> => {
    const store = stores[n % AGENTS]!;
    const lease = held[n]!;
    for (let attempt = 1; !isOver(); attempt++) {
      const call = metering.request({ sessionId: sessions[n]!, attempt, epoch: lease.epoch });
      // One of three calls asks metering, as the later steps of a turn do.
      const asks = attempt % 3 === 0;
      if (asks) await processes[n % 2]!.reserve(call);
      const started = await drive(store, call, lease, callStarted(call), asks ? {} : reserveOf(call));
      if (started.extension) reserved += 1;
      else if (!asks) await processes[n % 2]!.reserve(call);
      if (!asks) asked += 1;
      const { extension } = await drive(store, call, lease, callCompleted(call, 50, 50), settleOf(call));
      calls += 1;
      if (extension) settled += 1;
      else await processes[n % 2]!.endReservations.settleFromLog('default', call.reservationId);
    }
  };
  // Locks every lease in the order of their names, as the renewals of a process do.
  const renew = async (): Promise<void> => {
    while (!isOver()) expect(await leases.renew(held, 3_600_000)).toEqual([]);
  };
  const sweep = async (): Promise<void> => {
    while (!isOver()) await processes[0]!.endReservations.sweep();
  };
  await Promise.all([...sessions.map((_, n) => driver(n)), renew(), renew(), sweep()]);
  following.abort();
  await followed;
  const { rows } = await metering.admin.query<{ deadlocks: string }>(
    'select deadlocks from pg_stat_database where datname = current_database()',
  );
  expect(Number(rows[0]?.deadlocks)).toBe(0);
  expect(calls).toBeGreaterThan(DRIVERS * 5);
  // Few are settled by metering: the sweep may find an end first, and a full lock wait is given up.
  expect(settled / calls).toBeGreaterThan(0.9);
  expect(reserved / asked).toBeGreaterThan(0.9);
  const { balances } = await metering.rows();
  expect(balances.map((row) => row['reserved_tokens'])).toEqual(balances.map(() => '0'));
});
