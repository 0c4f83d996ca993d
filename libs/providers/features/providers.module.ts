import { Global, Module } from '@nestjs/common';
import { createLogMarks } from '@antiphon/event-store';
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
  createToken,
  provide,
  provideClass,
} from '@antiphon/service-host';
import { createCircuitStore } from './breakers/circuit-breaker.store.js';
import { CircuitBreakers } from './breakers/circuit-breaker.js';
import type { CircuitBreakerDeps } from './breakers/circuit-breaker.js';
import { createModels } from './adapters/create-models.js';
import { ChangeProviders } from './connected/change-providers.handler.js';
import { ConnectedProviders } from './connected/connected-providers.js';
import { ReadProviders } from './connected/read-providers.handler.js';
import { CredentialStore } from './credentials/credential-store.js';
import { SecretsHandler } from './credentials/secrets.handler.js';
import { Credentials } from './connected/credentials.handler.js';
import { createMasterKeyReader } from './credentials/master-keys.js';
import { MODELS } from './providers.tokens.js';

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
  provide(
    ConnectedProviders,
    [EVENT_STORE, IDS, NATS, LOGGER, DATABASE_POOL],
    (store, ids, nats, logger, pool) =>
      new ConnectedProviders({ store, ids, nats, logger, marks: createLogMarks(pool, ['provider']) }),
  ),
  provide(
    MODELS,
    [CONFIG, ENVIRONMENT, CredentialStore, ConnectedProviders],
    (config, env, credentials, connected) =>
      createModels(config, env, {
        readStoredKey: (workspace, provider) => credentials.read(workspace, provider),
        connected,
      }),
  ),
  provide(CIRCUIT_STORE, [DATABASE_POOL], createCircuitStore),
  provideClass(CircuitBreakers, { store: CIRCUIT_STORE, nats: NATS, clock: CLOCK, ids: IDS, logger: LOGGER }),
];

/** Models of providers, their circuit breakers, and the providers and keys of workspaces. */
@Global()
@Module({
  controllers: [Credentials, ChangeProviders, ReadProviders, SecretsHandler],
  providers,
  exports: providers,
})
export class ProvidersModule {}
