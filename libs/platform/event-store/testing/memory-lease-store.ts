import type { Clock } from '@antiphon/kernel';
import { systemClock } from '@antiphon/observability';
import type { Lease, LeaseAttempt, LeaseStore } from '../event-store.port.js';

interface LeaseRow {
  workspace: string;
  owner: string | null;
  epoch: number;
  expiresAt: number;
}

/** A lease store against which an in-memory log can check fences. */
export interface MemoryLeaseStore extends LeaseStore {
  inspect(
    workspace: string,
    name: string,
  ): { readonly owner: string | null; readonly epoch: number } | undefined;
  /** Acquires a lease as `acquire` does, in the same event-loop round. */
  take(workspace: string, name: string, owner: string, ttlMs: number): LeaseAttempt;
}

const toKey = (workspace: string, name: string): string => `${workspace} ${name}`;

class InMemoryLeaseStore implements MemoryLeaseStore {
  private readonly rows = new Map<string, LeaseRow>();

  constructor(private readonly clock: Clock) {}

  async acquire(workspace: string, name: string, owner: string, ttlMs: number): Promise<LeaseAttempt> {
    return this.take(workspace, name, owner, ttlMs);
  }

  take(workspace: string, name: string, owner: string, ttlMs: number): LeaseAttempt {
    const now = this.clock.now();
    const row = this.inspect(workspace, name);
    const isHeld = row !== undefined && row.owner !== null && row.expiresAt > now;
    if (isHeld && row.owner !== owner && row.owner !== null)
      return { acquired: false, owner: row.owner, epoch: row.epoch };
    const epoch = isHeld ? row.epoch : (row?.epoch ?? 0) + 1;
    this.rows.set(toKey(workspace, name), { workspace, owner, epoch, expiresAt: now + ttlMs });
    return { acquired: true, lease: { workspace, name, owner, epoch } };
  }

  async renew(leases: readonly Lease[], ttlMs: number): Promise<readonly string[]> {
    const lost: string[] = [];
    for (const lease of leases) {
      const row = this.findHeld(lease);
      if (row) row.expiresAt = this.clock.now() + ttlMs;
      else lost.push(lease.name);
    }
    return lost;
  }

  async release(lease: Lease): Promise<void> {
    const row = this.findHeld(lease);
    if (row) this.free(row);
  }

  async releaseOwner(ownerPrefix: string): Promise<number> {
    const owned = [...this.rows.values()].filter(({ owner }) => owner?.startsWith(ownerPrefix));
    for (const row of owned) this.free(row);
    return owned.length;
  }

  inspect(workspace: string, name: string): LeaseRow | undefined {
    return this.rows.get(toKey(workspace, name));
  }

  private findHeld({ workspace, name, owner, epoch }: Lease): LeaseRow | undefined {
    const row = this.inspect(workspace, name);
    return row?.owner === owner && row.epoch === epoch ? row : undefined;
  }

  private free(row: LeaseRow): void {
    row.owner = null;
    row.expiresAt = this.clock.now();
  }
}

/** Creates leases in this process's memory, judged by the given clock. */
export const createMemoryLeaseStore = (clock: Clock = systemClock): MemoryLeaseStore =>
  new InMemoryLeaseStore(clock);
