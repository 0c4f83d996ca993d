import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { v5 } from 'uuid';
import { sessionLease, sessionStream } from '@antiphon/contracts/agent';
import type { SessionEvent } from '@antiphon/contracts/agent';
import type { ReserveBudgetRequest } from '@antiphon/contracts/metering';
import { createPool } from '@antiphon/database';
import { createLeaseStore, createPostgresEventStore, verifyChain } from '@antiphon/event-store';
import type { AppendRequest } from '@antiphon/event-store';
import type { JsonObject } from '@antiphon/kernel';
import { callCompleted, callStarted, openMetering } from '../metering-fixtures.spec.js';

let metering: Awaited<ReturnType<typeof openMetering>>;
let pool: ReturnType<typeof createPool>;
let store: ReturnType<typeof createPostgresEventStore>;
let leases: ReturnType<typeof createLeaseStore>;
beforeAll(async () => {
  metering = await openMetering();
  pool = createPool({ url: metering.urlFor('agent'), applicationName: 'spec-agent', max: 2 });
  store = createPostgresEventStore(pool);
  leases = createLeaseStore(pool);
  metering.clock.time = Date.now();
  await metering.start().ruleStore.remember({ workspace: 'default', provider: 'scripted', model: 'echo' });
}, 60_000);
afterAll(async () => {
  await store.close();
  await pool.end();
  await metering.close();
});

const metadata = { correlationId: 'spec', service: 'agent', epoch: 1 };
const GUARDED = 'agent-guarded';

const requestOf = (
  { sessionId }: ReserveBudgetRequest,
  expectedVersion: number,
  events: readonly SessionEvent[],
  extension: JsonObject,
): AppendRequest => ({
  workspace: 'default',
  streams: [
    {
      streamId: sessionStream(sessionId),
      expectedVersion,
      events: events.map(({ type, data }) => ({
        ...{ eventId: randomUUID(), type, schemaVersion: 1, data: data as JsonObject, metadata },
      })),
    },
  ],
  guards: [
    { streamId: GUARDED, version: 0 },
    { streamId: 'file-guarded', version: 0 },
  ],
  fence: { lease: sessionLease(sessionId), epoch: 1 },
  extension,
});

const startOf = (call: ReserveBudgetRequest, version: number): AppendRequest =>
  requestOf(call, version, [callStarted(call)], {
    reserve: {
      ...{ reservationId: call.reservationId, eventId: v5('BudgetReserved ', call.reservationId) },
      ...{ agentId: 'main', agents: ['main'], sessionKey: call.sessionKey },
      ...{ inputBound: call.inputBound, maxOutputTokens: call.maxOutputTokens, lifetimeMs: 300_000 },
    },
  });

/** Two events, as those of an answer that ends a turn. */
const endOf = (call: ReserveBudgetRequest, version: number): AppendRequest =>
  requestOf(call, version, [callCompleted(call, 60, 30), callStarted({ ...call, attempt: 9 })], {
    settle: { reservationId: call.reservationId, eventId: v5('BudgetSettled ', call.reservationId) },
  });

/** Begins a session whose stream exists and whose lease is held. */
const beginSession = async (): Promise<ReserveBudgetRequest> => {
  const call = metering.request();
  await metering.sessionSays(call.sessionId, callStarted({ ...call, reservationId: randomUUID() }));
  await leases.acquire('default', sessionLease(call.sessionId), 'spec', 3_600_000);
  return call;
};

const positions = (events: readonly { readonly position: number }[]) =>
  events.map(({ position }) => position);

describe('a commit of one call on a stream that exists', () => {
  it('has the event of the call behind its own, in intact chains, and its rows', async () => {
    const call = await beginSession();
    const begun = await store.append(startOf(call, 1));
    const ended = await store.append(endOf(call, 2));
    expect([begun, ended]).toMatchObject([
      { outcome: 'appended', versions: [2], extension: { category: 'budget', reserved: { tokens: 500 } } },
      { outcome: 'appended', versions: [4], extension: { category: 'budget', settled: { inputTokens: 60 } } },
    ]);
    const [session, budget] = await Promise.all([
      store.readStream('default', sessionStream(call.sessionId)),
      metering.budgetEvents(call.reservationId),
    ]);
    expect(verifyChain(session)).toMatchObject({ isIntact: true, version: 4 });
    expect(verifyChain(budget)).toMatchObject({ isIntact: true, version: 2 });
    const first = begun.firstPosition;
    expect(positions(session).slice(1)).toEqual([first, first + 2, first + 3]);
    expect(positions(budget)).toEqual([first + 1, first + 4]);
    expect([begun.lastPosition, ended.firstPosition, ended.lastPosition]).toEqual([
      ...[first, first + 2, first + 3],
    ]);
    const { balances, reservations } = await metering.rows();
    const own = (rows: readonly Record<string, unknown>[]) =>
      rows.filter((row) => Object.values(row).some((value) => String(value).includes(call.sessionId)));
    expect(own(balances)).toMatchObject([{ settled_tokens: '90', reserved_tokens: '0' }]);
    expect(own(reservations)).toMatchObject([{ status: 'settled', charged_tokens: '90' }]);
  });

  const REFUSED: readonly (readonly [string, string, (request: AppendRequest) => AppendRequest])[] = [
    ['a guard', 'LOG.VERSION_CONFLICT', (r) => ({ ...r, guards: [{ streamId: GUARDED, version: 3 }] })],
    ['its fence', 'LOG.FENCED', (r) => ({ ...r, fence: { ...r.fence!, epoch: 7 } })],
    [
      'its version',
      'LOG.VERSION_CONFLICT',
      (r) => ({ ...r, streams: [{ ...r.streams[0]!, expectedVersion: 5 }] }),
    ],
    [
      'a guard of another service',
      'LOG.NOT_OWNER',
      (r) => ({ ...r, guards: [{ streamId: 'memory-x', version: 0 }] }),
    ],
  ];
  it.each(REFUSED)('is refused with %s, and reserves and settles nothing', async (_what, code, change) => {
    const [call, other] = [await beginSession(), await beginSession()];
    await store.append(startOf(other, 1));
    await expect(store.append(change(startOf(call, 1)))).rejects.toMatchObject({ code });
    await expect(store.append(change(endOf(other, 2)))).rejects.toMatchObject({ code });
    const events = await Promise.all([call, other].map((of) => metering.budgetEvents(of.reservationId)));
    expect(events.map((all) => all.map(({ type }) => type))).toEqual([[], ['BudgetReserved']]);
    const repeated = await store.append(endOf(other, 2));
    expect(repeated).toMatchObject({ versions: [4], extension: { settled: { inputTokens: 60 } } });
  });
});
