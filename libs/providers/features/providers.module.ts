import { Global, Module } from '@nestjs/common';
import { createPrismaClient } from '@antiphon/prisma-client';
import {
  CLOCK,
  CONFIG,
  DATABASE_POOL,
  ENVIRONMENT,
  IDS,
  LOGGER,
  NATS,
  createToken,
  provide,
  provideClass,
} from '@antiphon/service-host';
import { createCircuitStore } from './breakers/circuit-breaker.store.js';
import { CircuitBreakers } from './breakers/circuit-breaker.js';
import type { CircuitBreakerDeps } from './breakers/circuit-breaker.js';
import { createModels } from './adapters/create-models.js';
import type { Models } from './adapters/create-models.js';
import { CredentialStore } from './credentials/credential-store.js';
import { Credentials } from './credentials/credentials.handler.js';
import { createMasterKeyReader } from './credentials/master-keys.js';

/** Token of the models of all providers (`Models`). */
export const MODELS = createToken<Models>('MODELS');

const CIRCUIT_STORE = createToken<CircuitBreakerDeps['store']>('CIRCUIT_STORE');

const providers = [
  provide(
    CredentialStore,
    [DATABASE_POOL, ENVIRONMENT, CLOCK, IDS],
    (pool, env, clock, ids) =>
      new CredentialStore({
        ...{ clock, ids },
        prisma: createPrismaClient(pool),
        masterKeys: createMasterKeyReader(env),
      }),
  ),
  provide(MODELS, [CONFIG, ENVIRONMENT, CredentialStore], (config, env, credentials) =>
    createModels(config, env, {
      readStoredKey: (workspace, provider) => credentials.read(workspace, provider),
    }),
  ),
  provide(CIRCUIT_STORE, [DATABASE_POOL], createCircuitStore),
  provideClass(CircuitBreakers, { store: CIRCUIT_STORE, nats: NATS, clock: CLOCK, ids: IDS, logger: LOGGER }),
];

/** Models of providers, their circuit breakers, and the credentials that workspaces store for them. */
@Global()
@Module({ controllers: [Credentials], providers, exports: providers })
export class ProvidersModule {}
