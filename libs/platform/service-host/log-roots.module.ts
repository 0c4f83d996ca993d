import type { KeyObject } from 'node:crypto';
import { join } from 'node:path';
import { Inject, Injectable, Module } from '@nestjs/common';
import type { OnApplicationBootstrap, OnModuleDestroy } from '@nestjs/common';
import { loadSigningKey } from '@antiphon/event-store';
import type { LeaseStore } from '@antiphon/event-store';
import { isAppError } from '@antiphon/kernel';
import type { Clock } from '@antiphon/kernel';
import type { NatsLink } from '@antiphon/messaging';
import type { Logger } from '@antiphon/observability';
import type pg from 'pg';
import { z } from 'zod';
import type { HealthRegistry } from './health-registry.js';
import { optionalVariable, parseVariables } from './service-env.js';
import type { Environment, ServiceIdentity } from './service-env.js';
import { RootSigner } from './sign-log-roots.js';
import {
  CLOCK,
  DATABASE_POOL,
  ENVIRONMENT,
  HEALTH,
  LEASE_STORE,
  LOGGER,
  NATS,
  SERVICE_IDENTITY,
} from './tokens.js';

const Variables = z.object({
  ANTIPHON_HOME: z.string(),
  ANTIPHON_LOG_SIGNING_KEY_FILE: optionalVariable(z.string()),
  ANTIPHON_LOG_ROOTS_FILE: optionalVariable(z.string()),
  ANTIPHON_LOG_ROOT_EVERY_S: optionalVariable(z.coerce.number().int().min(1).max(86_400)),
});

export interface LogRootsSettings {
  readonly keyFile: string;
  readonly rootsFile: string;
  /** Default: ten minutes. */
  readonly everyMs: number;
}

/** Reads the files and the interval of log roots; throws `SERVICE.BAD_ENVIRONMENT`. */
export const readLogRootsEnv = (env: Environment): LogRootsSettings => {
  const { ANTIPHON_HOME: home, ...variables } = parseVariables(Variables, env);
  return {
    keyFile: variables.ANTIPHON_LOG_SIGNING_KEY_FILE ?? join(home, 'credentials', 'log-signing.key'),
    rootsFile: variables.ANTIPHON_LOG_ROOTS_FILE ?? join(home, 'log-roots.jsonl'),
    everyMs: (variables.ANTIPHON_LOG_ROOT_EVERY_S ?? 600) * 1_000,
  };
};

/**
 * Loads the signing key. Returns null where it cannot be created: a container's home is read-only.
 */
const loadKeyOrWarn = (file: string, logger: Logger): KeyObject | null => {
  try {
    return loadSigningKey(file);
  } catch (error) {
    if (isAppError(error)) throw error;
    logger.warn({ err: error, file }, 'log signing key missing');
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
    const key = loadKeyOrWarn(keyFile, logger);
    this.health.addFact('logRoots', () => ({
      signs: key !== null,
      position: this.signer?.last()?.position ?? null,
    }));
    if (key === null) return;
    const owner = this.identity.id;
    this.signer = new RootSigner({ pool, link, leases, owner, key, rootsFile, everyMs, clock, logger });
  }

  async onModuleDestroy(): Promise<void> {
    await this.signer?.stop();
  }
}

/** Signs the log's roots, in one of the processes that import it at a time. */
@Module({ providers: [LogRootsHost] })
export class LogRootsModule {}
