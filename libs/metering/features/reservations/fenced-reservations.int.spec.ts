import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { sessionLease } from '@antiphon/contracts/agent';
import { createPool } from '@antiphon/database';
import { createLeaseStore } from '@antiphon/event-store';
import { openMetering, WORKSPACE } from '../metering-fixtures.spec.js';

let metering: Awaited<ReturnType<typeof openMetering>>;
let agent: ReturnType<typeof createPool>;
beforeAll(async () => {
  metering = await openMetering();
  agent = createPool({ url: metering.urlFor('agent'), applicationName: 'spec-leases', max: 1 });
});
afterAll(async () => {
  await agent.end();
  await metering.close();
});

/** A session that one driver had, and another has now: its request, and the epochs of both. */
const takenOver = async () => {
  const leases = createLeaseStore(agent);
  const request = metering.request();
  const name = sessionLease(request.sessionId);
  const first = await leases.acquire(WORKSPACE, name, 'first', 60_000);
  if (first.acquired) await leases.release(first.lease);
  const second = await leases.acquire(WORKSPACE, name, 'second', 60_000);
  if (!first.acquired || !second.acquired) throw new Error('a lease of a new session is free');
  return { request, stale: first.lease.epoch, current: second.lease };
};

describe('a reservation under the lease of a session', () => {
  it('is refused to a replaced driver and reserves nothing', async () => {
    const { reserve } = metering.start({ limits: { session: 600 } });
    const { request, stale, current } = await takenOver();
    await expect(reserve({ ...request, epoch: stale })).rejects.toMatchObject({
      kind: 'conflict',
      code: 'LOG.FENCED',
      data: { actual: current.epoch },
    });
    expect(await metering.budgetEvents(request.reservationId)).toEqual([]);
    await expect(reserve({ ...request, epoch: current.epoch })).resolves.toMatchObject({ granted: true });
  });

  it('is refused by a process that does not know the session, and without a driver', async () => {
    const { request, current } = await takenOver();
    await createLeaseStore(agent).release(current);
    const { reserve } = metering.start();
    await expect(reserve({ ...request, epoch: current.epoch })).rejects.toMatchObject({ code: 'LOG.FENCED' });
  });

  it('does not affect the other commands of its batch', async () => {
    const { reserve } = metering.start();
    const { request, stale } = await takenOver();
    const others = Array.from({ length: 5 }, () => metering.request());
    const [refused, ...granted] = await Promise.allSettled([
      reserve({ ...request, epoch: stale }),
      ...others.map((other) => reserve(other)),
    ]);
    expect(refused).toMatchObject({ status: 'rejected', reason: { code: 'LOG.FENCED' } });
    expect(granted.map((reply) => reply.status === 'fulfilled' && reply.value.granted)).toEqual(
      others.map(() => true),
    );
  });
});
