import { DEFAULT_WORKSPACE } from '@antiphon/contracts/log';
import type { Fence, Lease, LeaseStore } from '@antiphon/event-store';
import type { Logger } from '@antiphon/observability';

export interface LeadershipOptions {
  readonly leases: LeaseStore;
  readonly name: string;
  /** Unique for this process. */
  readonly owner: string;
  /** Lifetime of the lease unless renewed. */
  readonly leaseMs: number;
  readonly logger: Logger;
}

/**
 * Elects one leader among processes by a lease, which is renewed three times in its lifetime and
 * lost when a renewal comes too late.
 */
export class Leadership {
  readonly #options: LeadershipOptions;
  readonly #timer: NodeJS.Timeout;
  #lease: Lease | null = null;
  // Counted from before the request: the database's clock started later, so this end is never the
  // later one. Monotonic: a wall clock that is set back would extend the leadership past its lease.
  #validUntil = 0;

  constructor(options: LeadershipOptions) {
    this.#options = options;
    this.#timer = setInterval(() => this.#renewOrWarn(), Math.floor(options.leaseMs / 3)).unref();
  }

  isLeader(): boolean {
    return this.#lease !== null && performance.now() < this.#validUntil;
  }

  /** Returns the token that fences the leader's appends; null unless this process leads. */
  fence(): Fence | null {
    return this.#lease && this.isLeader()
      ? { lease: this.#lease.name, epoch: this.#lease.epoch, workspace: this.#lease.workspace }
      : null;
  }

  /** Tries to acquire the lease; returns whether this process leads now. */
  async campaign(): Promise<boolean> {
    const { leases, name, owner, leaseMs, logger } = this.#options;
    const requestedAt = performance.now();
    const attempt = await leases.acquire(DEFAULT_WORKSPACE, name, owner, leaseMs);
    if (!attempt.acquired) return false;
    this.#lease = attempt.lease;
    this.#validUntil = requestedAt + leaseMs;
    logger.info({ lease: name, epoch: attempt.lease.epoch }, 'leadership acquired');
    return true;
  }

  /** Releases the lease, so that another process can lead at once. */
  async release(): Promise<void> {
    clearInterval(this.#timer);
    const held = this.#lease;
    this.#lease = null;
    if (held) await this.#options.leases.release(held);
  }

  #renewOrWarn(): void {
    if (this.#lease === null) return;
    const { logger, name } = this.#options;
    this.#renew(this.#lease).catch((error: unknown) =>
      logger.warn({ err: error, lease: name }, 'lease not renewed'),
    );
  }

  async #renew(held: Lease): Promise<void> {
    const { leases, leaseMs } = this.#options;
    const requestedAt = performance.now();
    const lost = await leases.renew([held], leaseMs);
    if (lost.length === 0) this.#validUntil = requestedAt + leaseMs;
    else this.#lease = null;
  }
}
