import { beforeAll, describe, expect, it } from '@jest/globals';
import type { LeaseAttempt } from '@antiphon/event-store';
import { until } from '../waits.js';
import { freshWorkspace, type LogUnderTest, type OpenedLog } from './log-under-test.js';

const HOUR = 3_600_000;
const epochOf = (attempt: LeaseAttempt): number => (attempt.acquired ? attempt.lease.epoch : 0);

/** Tests acquisition, renewal, release and epochs of leases. */
export const leaseContract = (opened: OpenedLog): void => {
  let log: LogUnderTest;
  beforeAll(() => {
    log = opened();
  });

  describe('leases', () => {
    it('gives a free lease to the first owner, and names the holder to the second', async () => {
      const workspace = freshWorkspace();
      const first = await log.leases.acquire(workspace, 'session/a', 'one', HOUR);
      expect(first).toEqual({
        acquired: true,
        lease: { workspace, name: 'session/a', owner: 'one', epoch: 1 },
      });
      expect(await log.leases.acquire(workspace, 'session/a', 'two', HOUR)).toEqual({
        acquired: false,
        owner: 'one',
        epoch: 1,
      });
      expect(epochOf(await log.leases.acquire(freshWorkspace(), 'session/a', 'two', HOUR))).toBe(1);
    });

    it('keeps the epoch when the holder renews, and raises it with every new owner', async () => {
      const workspace = freshWorkspace();
      expect(epochOf(await log.leases.acquire(workspace, 'session/a', 'one', HOUR))).toBe(1);
      expect(epochOf(await log.leases.acquire(workspace, 'session/a', 'one', 1))).toBe(1);
      await until(async () => epochOf(await log.leases.acquire(workspace, 'session/a', 'two', HOUR)) === 2);
    });

    it('raises the epoch when the same owner acquires a lapsed or released lease', async () => {
      const workspace = freshWorkspace();
      const lease = { workspace, name: 'session/a', owner: 'one', epoch: 1 };
      await log.leases.acquire(workspace, 'session/a', 'one', HOUR);
      await log.leases.release(lease);
      expect(epochOf(await log.leases.acquire(workspace, 'session/a', 'one', 1))).toBe(2);
      await until(async () => epochOf(await log.leases.acquire(workspace, 'session/a', 'one', 1)) > 2);
    });

    it('renews held leases and returns the lost ones', async () => {
      const workspace = freshWorkspace();
      const [held, lost] = ['session/held', 'session/lost'].map((name) => ({
        workspace,
        name,
        owner: 'one',
        epoch: 1,
      }));
      await log.leases.acquire(workspace, 'session/held', 'one', HOUR);
      await log.leases.acquire(workspace, 'session/lost', 'one', 1);
      await until(
        async () => epochOf(await log.leases.acquire(workspace, 'session/lost', 'two', HOUR)) === 2,
      );
      expect(await log.leases.renew([lost!, held!], HOUR)).toEqual(['session/lost']);
      expect(await log.leases.renew([], HOUR)).toEqual([]);
      expect(await log.leases.acquire(workspace, 'session/held', 'two', HOUR)).toEqual({
        acquired: false,
        owner: 'one',
        epoch: 1,
      });
    });

    it('releases a lease only for its holder and epoch', async () => {
      const workspace = freshWorkspace();
      await log.leases.acquire(workspace, 'session/a', 'one', HOUR);
      await log.leases.release({ workspace, name: 'session/a', owner: 'two', epoch: 1 });
      await log.leases.release({ workspace, name: 'session/a', owner: 'one', epoch: 9 });
      expect(await log.leases.acquire(workspace, 'session/a', 'two', HOUR)).toEqual({
        acquired: false,
        owner: 'one',
        epoch: 1,
      });
      await log.leases.release({ workspace, name: 'session/a', owner: 'one', epoch: 1 });
      expect(epochOf(await log.leases.acquire(workspace, 'session/a', 'two', HOUR))).toBe(2);
    });

    it('releases all leases of a dead owner by its prefix', async () => {
      const workspace = freshWorkspace();
      const dead = `agent-7_%-${workspace}`;
      for (const name of ['session/a', 'session/b', 'session/c'])
        await log.leases.acquire(workspace, name, `${dead}-x`, HOUR);
      await log.leases.acquire(workspace, 'session/d', `other-${workspace}`, HOUR);
      expect(await log.leases.releaseOwner(dead)).toBe(3);
      expect(await log.leases.releaseOwner(dead)).toBe(0);
      expect(epochOf(await log.leases.acquire(workspace, 'session/b', 'heir', HOUR))).toBe(2);
      expect(await log.leases.acquire(workspace, 'session/d', 'heir', HOUR)).toMatchObject({
        acquired: false,
      });
    });

    it('gives a lease to exactly one of many owners', async () => {
      const workspace = freshWorkspace();
      const owners = Array.from({ length: 20 }, (_, index) => `agent-${index}`);
      const attempts = await Promise.all(
        owners.map((owner) => log.leases.acquire(workspace, 'session/a', owner, HOUR)),
      );
      const winners = attempts.filter(({ acquired }) => acquired);
      expect(winners).toHaveLength(1);
      const holder = winners[0]?.acquired ? winners[0].lease.owner : '';
      for (const attempt of attempts) if (!attempt.acquired) expect(attempt.owner).toBe(holder);
    });
  });
};
