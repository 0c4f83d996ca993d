import { sessionLease } from '@antiphon/contracts/agent';
import type { Frame } from '@antiphon/contracts/agent';
import type { Fence, Lease, LeaseStore } from '@antiphon/event-store';

/** Result of an attempt to take a session's lease. */
export type Claim =
  | { readonly owned: true }
  | {
      readonly owned: false;
      /** Process that holds the lease. */
      readonly owner: string;
      /** Epoch of the owner's lease. */
      readonly epoch: number;
    };

export interface LeaseDeps {
  readonly leases: LeaseStore;
  /** Owner of this process's leases, unique for its incarnation. */
  readonly owner: string;
  readonly times: {
    /** Life of a lease that is not renewed, ms. */
    readonly leaseMs: number;
  };
  /**
   * Monotonic clock, ms; the process's own by default. It advances while the process is suspended.
   */
  readonly monotonic?: () => number;
}

/** Lease of one session as this process knows it. */
export class SessionLease {
  private lease: Lease | null = null;
  private isRowMissing = false;
  private confirmedAt = 0;
  private readonly monotonic: () => number;

  /** `onChange` is called when the lease is taken at a new epoch, or lost. */
  constructor(
    private readonly deps: LeaseDeps,
    private readonly workspace: string,
    private readonly sessionId: string,
    private readonly onChange: (lease: Lease | null) => void,
  ) {
    this.monotonic = deps.monotonic ?? (() => performance.now());
  }

  /** Returns the lease; null when another process holds it, or none does. */
  held(): Lease | null {
    return this.lease;
  }

  /**
   * Returns whether the lease is held and cannot have expired, so that no other process can hold
   * it.
   */
  isFresh(): boolean {
    return this.lease !== null && this.monotonic() - this.confirmedAt < this.deps.times.leaseMs;
  }

  /** Takes the lease, unless another process holds it. */
  async claim(): Promise<Claim> {
    if (this.isFresh()) return { owned: true };
    const { leases, owner, times } = this.deps;
    const askedAt = this.monotonic();
    const attempt = await leases.acquire(this.workspace, sessionLease(this.sessionId), owner, times.leaseMs);
    this.setLease(attempt.acquired ? attempt.lease : null, askedAt);
    return attempt.acquired ? { owned: true } : { owned: false, owner: attempt.owner, epoch: attempt.epoch };
  }

  /**
   * Takes the lease of a session that is being created. The session's first append acquires it in
   * the log: the id is new, so no other process can hold it. `epoch` is the one that a new lease
   * gets there. With another epoch the append fails with `LOG.FENCED`.
   */
  acquireOnAppend(epoch: number): Claim {
    const { workspace, sessionId } = this;
    const { owner } = this.deps;
    this.setLease({ workspace, name: sessionLease(sessionId), owner, epoch }, this.monotonic());
    this.isRowMissing = true;
    return { owned: true };
  }

  /** Returns the lease if its row exists, so that it can be renewed. */
  renewable(): Lease | null {
    return this.isRowMissing ? null : this.lease;
  }

  /** Returns the fence of an append under the lease; null when it is not held. */
  fence(): Fence | null {
    if (!this.lease) return null;
    const { name, owner, epoch } = this.lease;
    const acquire = { owner, ttlMs: this.deps.times.leaseMs };
    return { lease: name, epoch, ...(this.isRowMissing ? { acquire } : {}) };
  }

  /** Records an append under the lease. `askedAt` as in `markConfirmed`. */
  markAppended(askedAt: number): void {
    this.isRowMissing = false;
    this.markConfirmed(askedAt);
  }

  /** Renews the lease if it may have expired. Returns false when it is lost. */
  async confirm(): Promise<boolean> {
    // A response that was read after the lease's life proves nothing.
    while (this.lease && !this.isFresh()) await this.renew(this.lease);
    return this.lease !== null;
  }

  /**
   * Records that the lease was renewed, or passed the fence of an append. Its life counts from
   * `askedAt`, when the request was sent (monotonic, ms): a process may be suspended for any time
   * before it reads the response.
   */
  markConfirmed(askedAt: number): void {
    this.confirmedAt = Math.max(this.confirmedAt, askedAt);
  }

  /** Records that another process holds the lease: nothing more is written or sent under it. */
  markLost(): void {
    this.setLease(null, this.monotonic());
  }

  async release(): Promise<void> {
    const released = this.lease;
    this.markLost();
    if (released) await this.deps.leases.release(released);
  }

  private async renew(held: Lease): Promise<void> {
    const askedAt = this.monotonic();
    const lost = await this.deps.leases.renew([held], this.deps.times.leaseMs);
    if (lost.length > 0) this.setLease(null, askedAt);
    else this.markConfirmed(askedAt);
  }

  private setLease(next: Lease | null, askedAt: number): void {
    this.markConfirmed(askedAt);
    if (this.lease?.epoch === next?.epoch) return;
    // Another process may have held the session before the new epoch, so the old lease is lost
    // first.
    if (this.lease && next) this.setLease(null, askedAt);
    this.isRowMissing = false;
    this.lease = next;
    this.onChange(next);
  }
}

/**
 * Passes frames on ahead of their event, as long as no other process can hold the session. A
 * process that was suspended during a response finds the rest of it in its socket when it resumes.
 * Another process may drive the session by then. Frames that cannot be sent wait until the lease is
 * confirmed, or until the commit of their event sends all unsent ones.
 */
export class LeaseGate {
  private pending: Frame[] = [];
  private confirming = false;

  constructor(
    private readonly lease: Pick<SessionLease, 'isFresh' | 'confirm'>,
    private readonly send: (frames: readonly Frame[]) => void,
  ) {}

  pass(frames: readonly Frame[]): void {
    if (this.pending.length === 0 && this.lease.isFresh()) {
      this.send(frames);
      return;
    }
    this.pending.push(...frames);
    if (!this.confirming) void this.confirmLease();
  }

  private async confirmLease(): Promise<void> {
    this.confirming = true;
    // After an error the frames keep waiting, and the next frame tries again.
    const held = await this.lease.confirm().catch(() => null);
    this.confirming = false;
    if (held === null) return;
    const confirmed = this.pending;
    this.pending = [];
    if (held) this.send(confirmed);
  }
}
