import type { Lease } from '@antiphon/event-store';
import type { LaneServices } from './lane-services.js';
import { leaseNameOf } from './names.js';

export type Claim = { readonly owned: true } | { readonly owned: false; readonly owner: string };

/** The lease of one session as this process knows it. */
export interface LaneLease {
  /** What is held; null when it is another's or nobody's. */
  held(): Lease | null;
  /** Takes the lease, unless another process has it. */
  claim(): Promise<Claim>;
  /** Proves, if its life may have run out meanwhile, that it is still held; false when it is lost. */
  confirm(): Promise<boolean>;
  /** It was just renewed, or passed the fence of an append. */
  confirmed(): void;
  /** It is another's: nothing more is written or sent under it. */
  lost(): void;
  release(): Promise<void>;
}

/** `onChange`: the lease was taken at a new epoch, or lost. */
export const createLaneLease = (
  { leases, owner, times }: Pick<LaneServices, 'leases' | 'owner' | 'times'>,
  workspace: string,
  sessionId: string,
  onChange: (lease: Lease | null) => void,
): LaneLease => {
  let lease: Lease | null = null;
  let confirmedAt = 0;

  const isFresh = (): boolean => lease !== null && performance.now() - confirmedAt < times.leaseMs;
  const become = (next: Lease | null): void => {
    confirmedAt = performance.now();
    if (lease?.epoch === next?.epoch) return;
    // A new epoch: another process may have had the session in between, so the old one is lost first.
    if (lease && next) become(null);
    lease = next;
    onChange(next);
  };
  return {
    held: () => lease,
    claim: async () => {
      if (isFresh()) return { owned: true };
      const attempt = await leases.acquire(workspace, leaseNameOf(sessionId), owner, times.leaseMs);
      become(attempt.acquired ? attempt.lease : null);
      return attempt.acquired ? { owned: true } : { owned: false, owner: attempt.owner };
    },
    confirm: async () => {
      if (!lease || isFresh()) return lease !== null;
      const gone = await leases.renew([lease], times.leaseMs);
      if (gone.length > 0) become(null);
      else confirmedAt = performance.now();
      return lease !== null;
    },
    confirmed: () => void (confirmedAt = performance.now()),
    lost: () => become(null),
    release: async () => {
      const given = lease;
      become(null);
      if (given) await leases.release(given);
    },
  };
};
