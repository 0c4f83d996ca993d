/** A lease held by one owner at a time; its epoch grows each time that it changes hands. */
export interface Lease {
  readonly workspace: string;
  readonly name: string;
  readonly owner: string;
  readonly epoch: number;
}

export type LeaseAttempt =
  | { readonly acquired: true; readonly lease: Lease }
  | {
      readonly acquired: false;
      readonly owner: string;
      /** The holder's. */
      readonly epoch: number;
    };

/**
 * Rows with an owner, an epoch and an expiry by the database's clock: the lock across processes.
 * Operational state, not facts. Each append of a holder checks the epoch in its own transaction.
 */
export interface LeaseStore {
  /** Takes a free, lapsed or own lease for `ttlMs`. An own unexpired lease keeps its epoch. */
  acquire(workspace: string, name: string, owner: string, ttlMs: number): Promise<LeaseAttempt>;
  /** Prolongs what is still held at the same epoch; answers the names that were lost. */
  renew(leases: readonly Lease[], ttlMs: number): Promise<readonly string[]>;
  release(lease: Lease): Promise<void>;
  /** Frees every lease of an owner (or of all owners with this prefix) that is known to be dead; answers how many. */
  releaseOwner(ownerPrefix: string): Promise<number>;
}
