import { DEFAULT_WORKSPACE } from '@antiphon/contracts/log';
import type { Lease, LeaseStore } from '@antiphon/event-store';
import type { Logger } from '@antiphon/observability';

export interface LeadershipOptions {
  readonly leases: LeaseStore;
  readonly name: string;
  /** Unique for this process. */
  readonly owner: string;
  /** Life of the lease unless renewed. */
  readonly leaseMs: number;
  readonly logger: Logger;
}

/** One leader among processes: a lease that is taken, renewed, and lost when it could not be renewed in time. */
export interface Leadership {
  isLeader(): boolean;
  /** Tries to take the lease; answers whether this process leads now. */
  campaign(): Promise<boolean>;
  /** Gives the lease up, so that another process can lead at once. */
  release(): Promise<void>;
}

export const createLeadership = ({ leases, name, owner, leaseMs, logger }: LeadershipOptions): Leadership => {
  let lease: Lease | null = null;
  // Counted from before the question: the database's clock started later, so this end is never the later one. By a clock
  // that nobody sets: one that is put back would let this process lead on after its lease.
  let validUntil = 0;

  const renew = async (held: Lease): Promise<void> => {
    const asked = performance.now();
    const lost = await leases.renew([held], leaseMs);
    if (lost.length === 0) validUntil = asked + leaseMs;
    else lease = null;
  };
  const renewOrWarn = (): void => {
    if (lease === null) return;
    renew(lease).catch((error: unknown) =>
      logger.warn({ err: error, lease: name }, 'a lease was not renewed'),
    );
  };
  const timer = setInterval(renewOrWarn, Math.floor(leaseMs / 3));

  return {
    isLeader: () => lease !== null && performance.now() < validUntil,
    campaign: async () => {
      const asked = performance.now();
      const attempt = await leases.acquire(DEFAULT_WORKSPACE, name, owner, leaseMs);
      if (!attempt.acquired) return false;
      lease = attempt.lease;
      validUntil = asked + leaseMs;
      logger.info({ lease: name, epoch: lease.epoch }, 'this process leads');
      return true;
    },
    release: async () => {
      clearInterval(timer);
      const held = lease;
      lease = null;
      if (held) await leases.release(held);
    },
  };
};
