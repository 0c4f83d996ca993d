import { sessionLease } from '@antiphon/contracts/agent';
import type { Lease, LeaseStore } from '@antiphon/event-store';

export type Claim =
  | { readonly owned: true }
  | {
      readonly owned: false;
      readonly owner: string;
      /** The owner's. */
      readonly epoch: number;
    };

/** The lease of one session as this process knows it. */
export interface SessionLease {
  /** What is held; null when it is another's or nobody's. */
  held(): Lease | null;
  /** Whether its life cannot have run out: nobody else can have it. False for what is not held. */
  isFresh(): boolean;
  /** Takes the lease, unless another process has it. */
  claim(): Promise<Claim>;
  /** Proves, if its life may have run out meanwhile, that it is still held; false when it is lost. */
  confirm(): Promise<boolean>;
  /**
   * It was just renewed, or passed the fence of an append, which was sent at `askedAt` (ms, the process's monotonic
   * clock): its life is counted from there, since a process may sleep for any time before it reads an answer.
   */
  confirmed(askedAt: number): void;
  /** It is another's: nothing more is written or sent under it. */
  lost(): void;
  release(): Promise<void>;
}

export interface LeaseDeps {
  readonly leases: LeaseStore;
  /** Owner of this process's leases, unique for its incarnation. */
  readonly owner: string;
  readonly times: {
    /** Life of a lease that is not renewed, ms. */
    readonly leaseMs: number;
  };
  /** Monotonic clock, ms; the process's own by default. It advances while the process is suspended. */
  readonly monotonic?: () => number;
}

/** `onChange`: the lease was taken at a new epoch, or lost. */
export const createSessionLease = (
  { leases, owner, times, monotonic = () => performance.now() }: LeaseDeps,
  workspace: string,
  sessionId: string,
  onChange: (lease: Lease | null) => void,
): SessionLease => {
  let lease: Lease | null = null;
  let confirmedAt = 0;

  const isFresh = (): boolean => lease !== null && monotonic() - confirmedAt < times.leaseMs;
  const confirmed = (askedAt: number): void => void (confirmedAt = Math.max(confirmedAt, askedAt));
  const become = (next: Lease | null, askedAt: number): void => {
    confirmed(askedAt);
    if (lease?.epoch === next?.epoch) return;
    // A new epoch: another process may have had the session in between, so the old one is lost first.
    if (lease && next) become(null, askedAt);
    lease = next;
    onChange(next);
  };
  const renewed = async (held: Lease): Promise<boolean> => {
    const askedAt = monotonic();
    const gone = await leases.renew([held], times.leaseMs);
    if (gone.length > 0) become(null, askedAt);
    else confirmed(askedAt);
    return gone.length === 0;
  };
  return {
    held: () => lease,
    isFresh,
    claim: async () => {
      if (isFresh()) return { owned: true };
      const askedAt = monotonic();
      const attempt = await leases.acquire(workspace, sessionLease(sessionId), owner, times.leaseMs);
      become(attempt.acquired ? attempt.lease : null, askedAt);
      return attempt.acquired
        ? { owned: true }
        : { owned: false, owner: attempt.owner, epoch: attempt.epoch };
    },
    confirm: async () => {
      // An answer that took longer to be read than a lease lives proves nothing.
      while (lease && !isFresh()) await renewed(lease);
      return lease !== null;
    },
    confirmed,
    lost: () => become(null, monotonic()),
    release: async () => {
      const given = lease;
      become(null, monotonic());
      if (given) await leases.release(given);
    },
  };
};
