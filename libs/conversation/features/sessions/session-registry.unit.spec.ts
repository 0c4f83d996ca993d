import { randomUUID } from 'node:crypto';
import { beforeEach, describe, expect, it } from '@jest/globals';
import { createMemoryLeaseStore } from '@antiphon/event-store/testing';
import type { LeaseStore } from '@antiphon/event-store';
import type { MemoryLeaseStore } from '@antiphon/event-store/testing';
import { silentLogger } from '@antiphon/observability';
import { sessionLease } from '@antiphon/contracts/agent';
import { createLocalSession } from './local-session.js';
import type { SessionDeps, SessionDriver } from './local-session.js';
import { LocalSessions } from './local-sessions.js';
import { SessionRegistry } from './session-registry.js';
import type { RegistryDeps } from './session-registry.js';
import { SessionUpkeep } from './session-upkeep.js';
import type { SessionUpkeepDeps } from './session-upkeep.js';

const MAX_SESSIONS = 10;
const WORKSPACE = 'default';
const OWNER = 'agent-1';
const times = { leaseMs: 60_000, idleMs: 60_000, pollMs: 60_000 };

const idleDriver: SessionDriver = {
  wake: () => undefined,
  prefetchContext: () => undefined,
  reserveInCommit: () => ({}),
  isWorking: () => false,
  stop: () => Promise.resolve(),
  onChange: () => undefined,
  onAppending: () => undefined,
};

let leases: MemoryLeaseStore;
let registry: SessionRegistry;
/** Releases that have begun; they end once the spec ends them. */
let releases: { end: () => void }[];
let waitsForSpec: boolean;
beforeEach(() => {
  leases = createMemoryLeaseStore();
  releases = [];
  waitsForSpec = false;
  const watched: LeaseStore = {
    ...{ acquire: leases.acquire.bind(leases), renew: leases.renew.bind(leases) },
    releaseOwner: leases.releaseOwner.bind(leases),
    release: async (lease) => {
      await new Promise<void>((end) => {
        releases.push({ end });
        if (!waitsForSpec) end();
      });
      await leases.release(lease);
    },
  };
  const log = { readAfter: async () => [] };
  const deps = { leases: watched, owner: OWNER, times, log, drivers: { create: () => idleDriver } };
  const createSession = createLocalSession(deps as unknown as SessionDeps);
  const sessions = new LocalSessions(createSession, MAX_SESSIONS);
  const all = { ...deps, sessions, logger: silentLogger, readVersions: async () => [] };
  const upkeep = new SessionUpkeep(all as unknown as SessionUpkeepDeps);
  registry = new SessionRegistry({ ...all, upkeep } as unknown as RegistryDeps);
});

const create = async (count: number): Promise<string[]> => {
  const ids = Array.from({ length: count }, () => randomUUID());
  for (const id of ids) await registry.create(WORKSPACE, id, false);
  return ids;
};
const isKnown = (id: string): boolean => registry.find(WORKSPACE, id) !== undefined;
const isHeld = (id: string): boolean => leases.inspect(WORKSPACE, sessionLease(id))?.owner === OWNER;

describe('the sessions of a process', () => {
  it('are the newest ones up to a maximum, however many have one turn', async () => {
    const ids = await create(50 * MAX_SESSIONS);
    await registry.runUpkeep();
    expect(ids.filter(isKnown)).toEqual(ids.slice(-MAX_SESSIONS));
    expect(ids.filter(isHeld)).toEqual(ids.slice(-MAX_SESSIONS));
  });

  it('are released together, so that a release is never behind new sessions', async () => {
    waitsForSpec = true;
    await create(50 * MAX_SESSIONS);
    const upkeep = registry.runUpkeep();
    while (releases.length === 0) await Promise.resolve();
    await new Promise(setImmediate);
    expect(releases).toHaveLength(49 * MAX_SESSIONS);
    for (const { end } of releases) end();
    await upkeep;
  });

  it('keep their actor while their lease is being released', async () => {
    waitsForSpec = true;
    const [first = ''] = await create(MAX_SESSIONS + 1);
    const actor = registry.find(WORKSPACE, first)?.actor;
    const upkeep = registry.runUpkeep();
    while (releases.length === 0) await Promise.resolve();
    expect(registry.open(WORKSPACE, first).actor).toBe(actor);
    const claim = actor?.claim();
    for (const { end } of releases) end();
    await upkeep;
    expect(await claim).toEqual({ owned: true });
    expect(registry.find(WORKSPACE, first)?.actor).toBe(actor);
  });
});
