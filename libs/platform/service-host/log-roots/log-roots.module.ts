import type { KeyObject } from 'node:crypto';
import { Inject, Injectable, Module } from '@nestjs/common';
import type { OnApplicationBootstrap, OnModuleDestroy } from '@nestjs/common';
import { loadSigningKey } from '@antiphon/event-store';
import type { LeaseStore } from '@antiphon/event-store';
import { isAppError } from '@antiphon/kernel';
import type { Clock } from '@antiphon/kernel';
import type { NatsLink } from '@antiphon/messaging';
import type { Logger } from '@antiphon/observability';
import type pg from 'pg';
import type { HealthRegistry } from '../health-registry.js';
import type { Environment } from '../service-env.js';
import type { ServiceIdentity } from '../service-identity.js';
import {
  CLOCK,
  DATABASE_POOL,
  ENVIRONMENT,
  HEALTH,
  LEASE_STORE,
  LOGGER,
  NATS,
  SERVICE_IDENTITY,
} from '../tokens.js';
import { readLogRootsEnv } from './log-roots-env.js';
import { startRootSigner } from './sign-roots.js';
import type { RootSigner } from './sign-roots.js';

/** In a container's home, which nothing may write to, there is no key unless one is mounted: then nothing is signed. */
const keyOrWarn = (file: string, logger: Logger): KeyObject | null => {
  try {
    return loadSigningKey(file);
  } catch (error) {
    if (isAppError(error)) throw error;
    logger.warn(
      { err: error, file },
      "the log's roots are not signed: there is no key, and none can be made",
    );
    return null;
  }
};

@Injectable()
class LogRootsHost implements OnApplicationBootstrap, OnModuleDestroy {
  private signer: RootSigner | undefined;

  constructor(
    @Inject(DATABASE_POOL) private readonly pool: pg.Pool,
    @Inject(NATS) private readonly link: NatsLink,
    @Inject(LEASE_STORE) private readonly leases: LeaseStore,
    @Inject(SERVICE_IDENTITY) private readonly identity: ServiceIdentity,
    @Inject(CLOCK) private readonly clock: Clock,
    @Inject(ENVIRONMENT) private readonly environment: Environment,
    @Inject(HEALTH) private readonly health: HealthRegistry,
    @Inject(LOGGER) private readonly logger: Logger,
  ) {}

  onApplicationBootstrap(): void {
    const { pool, link, leases, clock, logger } = this;
    const { keyFile, rootsFile, everyMs } = readLogRootsEnv(this.environment);
    const key = keyOrWarn(keyFile, logger);
    this.health.addFact('logRoots', () => ({
      signs: key !== null,
      position: this.signer?.last()?.position ?? null,
    }));
    if (key === null) return;
    const owner = this.identity.id;
    this.signer = startRootSigner({ pool, link, leases, owner, key, rootsFile, everyMs, clock, logger });
  }

  async onModuleDestroy(): Promise<void> {
    await this.signer?.stop();
  }
}

/** Signs the log's roots from this service; of its processes one does at a time. */
@Module({ providers: [LogRootsHost] })
export class LogRootsModule {}
