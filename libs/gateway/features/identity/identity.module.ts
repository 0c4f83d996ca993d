import { Inject, Module, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common';
import type { AntiphonConfig } from '@antiphon/config';
import { createSeparatePool } from '@antiphon/database';
import type { EventStore } from '@antiphon/event-store';
import { type Clock, type Ids } from '@antiphon/kernel';
import type { NatsLink } from '@antiphon/messaging';
import type { Logger } from '@antiphon/observability';
import { createPrismaClient } from '@antiphon/prisma-client';
import {
  CLOCK,
  CONFIG,
  DATABASE_POOL,
  ENVIRONMENT,
  EVENT_STORE,
  IDS,
  LOGGER,
  NATS,
  type Environment,
} from '@antiphon/service-host';
import type { Pool } from 'pg';
import { IDENTITIES } from '../gateway.ports.js';
import { ensureBootstrapKey, readBootstrapKeys } from './bootstrap-key.js';
import { IDENTITY_LOG, createIdentityLog, type IdentityLog } from './identity-log.js';
import { IdentitySweep } from './identity-sweep.js';
import { KeyIdentities } from './key-identities.js';
import { createKeyLookup } from './key-lookup.js';
import { publishKeyChange, subscribeKeyChanges } from './key-notifications.js';
import { KeyRegistry } from './key-registry.js';
import { tokenVersionOf } from './session-keys.js';
import { WorkspaceRegistry } from './workspace-registry.js';

const SWEEP_MS = 60_000;
/** Connections for keys and workspaces, so that no credential waits for reads of the log. */
const CONNECTIONS = 3;

/** Objects of this module, on one Prisma Client. */
interface IdentityParts {
  readonly identities: KeyIdentities;
  readonly log: IdentityLog;
  readonly keys: KeyRegistry;
  readonly workspaces: WorkspaceRegistry;
  readonly sweep: IdentitySweep;
  readonly pool: Pool;
}

const PARTS = Symbol('PARTS');

const createParts = (
  shared: Pool,
  store: EventStore,
  nats: NatsLink,
  clock: Clock,
  ids: Ids,
  logger: Logger,
  { gateway }: Pick<AntiphonConfig, 'gateway'>,
): IdentityParts => {
  const pool = createSeparatePool(shared, CONNECTIONS, logger);
  const prisma = createPrismaClient(pool);
  const log = createIdentityLog(store, ids);
  const identities = new KeyIdentities({
    ...{ find: createKeyLookup(prisma), clock, logger },
    tokenVersion: tokenVersionOf(gateway.token),
  });
  const notify = (keyId: string): void => {
    publishKeyChange(nats, keyId);
    void identities.refresh(keyId);
  };
  const keys = new KeyRegistry({ prisma, log, clock, notify });
  const workspaces = new WorkspaceRegistry({ prisma, log, keys, clock });
  return {
    identities,
    log,
    keys,
    workspaces,
    sweep: new IdentitySweep({ prisma, log, registry: keys, clock }),
    pool,
  };
};

/** Runs what identities do in the background: notifications, the bootstrap key and the sweep. */
class IdentityLifecycle implements OnApplicationBootstrap, OnApplicationShutdown {
  #timer: NodeJS.Timeout | null = null;
  #unsubscribe: (() => void) | null = null;

  constructor(
    @Inject(PARTS) private readonly parts: IdentityParts,
    @Inject(NATS) private readonly nats: NatsLink,
    @Inject(LOGGER) private readonly logger: Logger,
    @Inject(ENVIRONMENT) private readonly environment: Environment,
  ) {}

  async onApplicationBootstrap(): Promise<void> {
    const { identities, keys, log } = this.parts;
    this.#unsubscribe = subscribeKeyChanges(this.nats, (keyId) => void identities.refresh(keyId));
    for (const key of readBootstrapKeys(this.environment))
      await ensureBootstrapKey(key, keys, log, this.logger);
    this.#timer = setInterval(() => void this.#sweep(), SWEEP_MS).unref();
  }

  async onApplicationShutdown(): Promise<void> {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#unsubscribe?.();
    this.parts.identities.close();
    await this.parts.pool.end();
  }

  async #sweep(): Promise<void> {
    try {
      await this.parts.sweep.run();
    } catch (error) {
      this.logger.warn({ err: error }, 'identity sweep failed');
    }
  }
}

/** Identities of the gateway: API keys and workspaces. */
@Module({
  providers: [
    {
      provide: PARTS,
      inject: [DATABASE_POOL, EVENT_STORE, NATS, CLOCK, IDS, LOGGER, CONFIG],
      useFactory: createParts,
    },
    { provide: IDENTITIES, inject: [PARTS], useFactory: ({ identities }: IdentityParts) => identities },
    { provide: IDENTITY_LOG, inject: [PARTS], useFactory: ({ log }: IdentityParts) => log },
    { provide: KeyRegistry, inject: [PARTS], useFactory: ({ keys }: IdentityParts) => keys },
    {
      provide: WorkspaceRegistry,
      inject: [PARTS],
      useFactory: ({ workspaces }: IdentityParts) => workspaces,
    },
    IdentityLifecycle,
  ],
  exports: [IDENTITIES, IDENTITY_LOG, KeyRegistry, WorkspaceRegistry],
})
export class IdentityModule {}
