import type { Clock } from '@antiphon/kernel';
import { systemClock } from '@antiphon/observability';
import type { Lease, LeaseStore } from './lease.port.js';

interface Held {
  workspace: string;
  owner: string | null;
  epoch: number;
  expiresAt: number;
}

/** A lease store that an in-memory log can check fences against. */
export interface MemoryLeaseStore extends LeaseStore {
  inspect(
    workspace: string,
    name: string,
  ): { readonly owner: string | null; readonly epoch: number } | undefined;
}

/** Leases in this process's memory, judged by the given clock. */
export const createMemoryLeaseStore = (clock: Clock = systemClock): MemoryLeaseStore => {
  const rows = new Map<string, Held>();
  const keyOf = (workspace: string, name: string): string => `${workspace} ${name}`;
  const isHeld = ({ workspace, name, owner, epoch }: Lease): boolean => {
    const row = rows.get(keyOf(workspace, name));
    return row?.owner === owner && row.epoch === epoch;
  };
  const free = (row: Held): void => {
    row.owner = null;
    row.expiresAt = clock.now();
  };

  return {
    acquire: async (workspace, name, owner, ttlMs) => {
      const key = keyOf(workspace, name);
      const row = rows.get(key);
      const alive = row !== undefined && row.owner !== null && row.expiresAt > clock.now();
      if (alive && row.owner !== owner && row.owner !== null)
        return { acquired: false, owner: row.owner, epoch: row.epoch };
      const epoch = alive ? row.epoch : (row?.epoch ?? 0) + 1;
      rows.set(key, { workspace, owner, epoch, expiresAt: clock.now() + ttlMs });
      return { acquired: true, lease: { workspace, name, owner, epoch } };
    },
    renew: async (leases, ttlMs) => {
      for (const lease of leases.filter(isHeld)) {
        const row = rows.get(keyOf(lease.workspace, lease.name));
        if (row) row.expiresAt = clock.now() + ttlMs;
      }
      return leases.filter((lease) => !isHeld(lease)).map(({ name }) => name);
    },
    release: async (lease) => {
      const row = rows.get(keyOf(lease.workspace, lease.name));
      if (row && isHeld(lease)) free(row);
    },
    releaseOwner: async (ownerPrefix) => {
      const owned = [...rows.values()].filter(({ owner }) => owner?.startsWith(ownerPrefix));
      for (const row of owned) free(row);
      return owned.length;
    },
    inspect: (workspace, name) => rows.get(keyOf(workspace, name)),
  };
};
