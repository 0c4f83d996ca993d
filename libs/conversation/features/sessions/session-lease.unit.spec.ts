import { describe, expect, it } from '@jest/globals';
import type { Frame } from '@antiphon/contracts/agent';
import type { Lease, LeaseStore } from '@antiphon/event-store';
import { LeaseGate, SessionLease } from './session-lease.js';

const LEASE_MS = 5_000;

/** Opens a lease whose responses may be read late, as by a process that was suspended. */
const openLease = () => {
  const clock = { now: 0 };
  const answers = { lateBy: 0, gone: false, renewals: 0 };
  const sleep = (): void => {
    clock.now += answers.lateBy;
    answers.lateBy = 0;
  };
  const leases: Pick<LeaseStore, 'acquire' | 'renew' | 'release'> = {
    acquire: async (workspace, name, owner) => {
      sleep();
      return { acquired: true, lease: { workspace, name, owner, epoch: 1 } };
    },
    renew: async (held) => {
      answers.renewals += 1;
      sleep();
      return answers.gone ? held.map(({ name }) => name) : [];
    },
    release: async () => undefined,
  };
  const changes: (Lease | null)[] = [];
  const lease = new SessionLease(
    {
      leases: leases as LeaseStore,
      owner: 'me',
      times: { leaseMs: LEASE_MS },
      monotonic: () => clock.now,
    },
    'default',
    'a-session',
    (now) => changes.push(now),
  );
  return { lease, clock, answers, changes };
};

describe('SessionLease', () => {
  it('counts its life from the request, not from the response', async () => {
    const { lease, answers } = openLease();
    answers.lateBy = LEASE_MS;
    expect(await lease.claim()).toEqual({ owned: true });
    expect(lease.held()?.epoch).toBe(1);
    expect(lease.isFresh()).toBe(false);
  });

  it('is not extended by a renewal whose response was read too late', async () => {
    const { lease, clock } = openLease();
    await lease.claim();
    const askedAt = clock.now;
    clock.now += 20_000;
    lease.markConfirmed(askedAt);
    expect(lease.isFresh()).toBe(false);
  });

  it('of a new session is acquired by its first append, and not renewed before', () => {
    const { lease, clock, changes } = openLease();
    expect(lease.acquireOnAppend(8)).toEqual({ owned: true });
    expect([lease.held()?.epoch, lease.isFresh(), lease.renewable()]).toEqual([8, true, null]);
    const fence = { lease: 'session/a-session', epoch: 8 };
    expect(lease.fence()).toEqual({ ...fence, acquire: { owner: 'me', ttlMs: LEASE_MS } });
    lease.markAppended(clock.now);
    expect(lease.fence()).toEqual(fence);
    expect(lease.renewable()).toBe(lease.held());
    expect(changes).toHaveLength(1);
  });

  it('renews until a response arrives in time', async () => {
    const { lease, clock, answers } = openLease();
    await lease.claim();
    clock.now += LEASE_MS;
    answers.lateBy = LEASE_MS;
    expect(await lease.confirm()).toBe(true);
    expect(answers.renewals).toBe(2);
    expect(lease.isFresh()).toBe(true);
  });

  it('is lost when another process holds it', async () => {
    const { lease, clock, answers, changes } = openLease();
    await lease.claim();
    clock.now += LEASE_MS;
    answers.gone = true;
    expect(await lease.confirm()).toBe(false);
    expect(changes.at(-1)).toBeNull();
  });
});

describe('LeaseGate', () => {
  const frame = (index: number): Frame => ({
    event: 'text',
    data: `${index}`,
    offset: index,
    prev: index - 1,
    turnId: '00000000-0000-4000-8000-000000000000',
  });
  const openGate = async () => {
    const world = openLease();
    const sent: unknown[] = [];
    const gate = new LeaseGate(world.lease, (frames) => sent.push(...frames.map(({ data }) => data)));
    const send = (frames: Frame[]) => gate.pass(frames);
    await world.lease.claim();
    return { ...world, sent, send };
  };

  it('passes frames at once while the lease is fresh', async () => {
    const { send, sent } = await openGate();
    send([frame(1)]);
    expect(sent).toEqual(['1']);
  });

  it('holds frames in order until the lease is confirmed', async () => {
    const { send, sent, clock } = await openGate();
    clock.now += LEASE_MS;
    send([frame(1)]);
    send([frame(2)]);
    expect(sent).toEqual([]);
    await new Promise((resolve) => setImmediate(resolve));
    expect(sent).toEqual(['1', '2']);
  });

  it('drops frames once the lease is lost', async () => {
    const { send, sent, clock, answers } = await openGate();
    clock.now += LEASE_MS;
    answers.gone = true;
    send([frame(1)]);
    await new Promise((resolve) => setImmediate(resolve));
    send([frame(2)]);
    await new Promise((resolve) => setImmediate(resolve));
    expect(sent).toEqual([]);
  });
});
