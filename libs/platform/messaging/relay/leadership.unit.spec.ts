import { afterEach, describe, expect, it, jest } from '@jest/globals';
import type { LeaseStore } from '@antiphon/event-store';
import { transient } from '@antiphon/kernel';
import { silentLogger } from '@antiphon/observability';
import { until } from '@antiphon/testing';
import { Leadership } from './leadership.js';

afterEach(() => void jest.restoreAllMocks());

/** Grants one lease and never renews it. */
const leases = {
  acquire: async () => ({
    acquired: true,
    lease: { workspace: 'default', name: 'relay', owner: 'a', epoch: 1 },
  }),
  renew: () => Promise.reject(transient('LOG.UNAVAILABLE', 'the database is away')),
  release: async () => undefined,
} as unknown as LeaseStore;

describe('leadership', () => {
  it('ends with the lease after the wall clock was set back', async () => {
    const options = { leases, name: 'relay', owner: 'a', leaseMs: 60, logger: silentLogger };
    const leadership = new Leadership(options);
    await leadership.campaign();
    expect(leadership.isLeader()).toBe(true);
    jest.spyOn(Date, 'now').mockReturnValue(Date.now() - 3_600_000);
    await until(() => !leadership.isLeader(), 5_000);
    await leadership.release();
  });
});
