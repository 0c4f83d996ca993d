import type { Principal } from '@antiphon/contracts/identity';
import { createPool } from '@antiphon/database';
import { createPostgresEventStore, type EventStore, type EventStorePg } from '@antiphon/event-store';
import { silentLogger, uuidIds } from '@antiphon/observability';
import { createPrismaClient, type OperationalClient } from '@antiphon/prisma-client';
import { createTestDatabase, type TestDatabase } from '@antiphon/testing';
import type { Pool } from 'pg';
import { createIdentityLog, type IdentityLog } from '../identity/identity-log.js';
import { IdentitySweep } from '../identity/identity-sweep.js';
import { KeyIdentities } from '../identity/key-identities.js';
import { createKeyLookup } from '../identity/key-lookup.js';
import { KeyRegistry } from '../identity/key-registry.js';
import { WorkspaceRegistry } from '../identity/workspace-registry.js';

/** Admin of a workspace, as a guard would pass it on. */
export const adminOf = (workspace: string, more: Partial<Principal> = {}): Principal => ({
  caller: 'token',
  workspace,
  role: 'admin',
  scopes: null,
  keyId: null,
  name: null,
  agentId: null,
  expiresAt: null,
  ...more,
});

/** Identities of one gateway on a database of its own. */
export interface IdentityWorld {
  readonly database: TestDatabase;
  readonly pool: Pool;
  readonly prisma: OperationalClient;
  readonly store: EventStore & EventStorePg;
  readonly log: IdentityLog;
  /** Adds `ahead` ms to the time of the machine. */
  readonly clock: { ahead: number; now(): number };
  readonly notified: string[];
  readonly keys: KeyRegistry;
  readonly workspaces: WorkspaceRegistry;
  readonly sweep: IdentitySweep;
  readonly identities: KeyIdentities;
  /** Creates the identities of another gateway. */
  otherGateway(): KeyIdentities;
  /** Creates a registry whose log is another one. */
  registryWith(log: IdentityLog): KeyRegistry;
  close(): Promise<void>;
}

export const createIdentityWorld = async (): Promise<IdentityWorld> => {
  const database = await createTestDatabase();
  const pool = createPool({ url: database.urlFor('gateway'), applicationName: 'spec' });
  const prisma = createPrismaClient(pool);
  const store = createPostgresEventStore(pool);
  const log = createIdentityLog(store, uuidIds);
  const clock = { ahead: 0, now: () => Date.now() + clock.ahead };
  const notified: string[] = [];
  const registryWith = (other: IdentityLog): KeyRegistry =>
    new KeyRegistry({ prisma, log: other, clock, notify: (keyId) => notified.push(keyId) });
  const keys = registryWith(log);
  const opened: KeyIdentities[] = [];
  const otherGateway = (): KeyIdentities => {
    const identities = new KeyIdentities({ find: createKeyLookup(prisma), clock, logger: silentLogger });
    opened.push(identities);
    return identities;
  };
  return {
    database,
    pool,
    prisma,
    store,
    log,
    clock,
    notified,
    keys,
    workspaces: new WorkspaceRegistry({ prisma, log, keys, clock }),
    sweep: new IdentitySweep({ prisma, log, registry: keys, clock }),
    identities: otherGateway(),
    otherGateway,
    registryWith,
    close: async () => {
      for (const identities of opened) identities.close();
      await store.close();
      await pool.end();
      await database.drop();
    },
  };
};
