import { Module } from '@nestjs/common';
import type { AntiphonConfig } from '@antiphon/config';
import type { Clock, Ids } from '@antiphon/kernel';
import { createPrismaClient } from '@antiphon/prisma-client';
import { CLOCK, CONFIG, DATABASE_POOL, ENVIRONMENT, IDS } from '@antiphon/service-host';
import type { Environment } from '@antiphon/service-host';
import type pg from 'pg';
import { createModels } from './adapters/create-models.js';
import type { Models } from './adapters/create-models.js';
import { CredentialStore } from './credentials/credential-store.js';
import { Credentials } from './credentials/credentials.handler.js';
import { createMasterKeyReader } from './credentials/master-keys.js';

/** Token of the models of all providers (`Models`). */
export const MODELS = Symbol('MODELS');

const createCredentialStore = (pool: pg.Pool, env: Environment, clock: Clock, ids: Ids): CredentialStore =>
  new CredentialStore({
    ...{ clock, ids },
    prisma: createPrismaClient(pool),
    masterKeys: createMasterKeyReader(env),
  });

const createStoredModels = (config: AntiphonConfig, env: Environment, credentials: CredentialStore): Models =>
  createModels(config, env, {
    readStoredKey: (workspace, provider) => credentials.read(workspace, provider),
  });

/** Models of providers, and the credentials that workspaces store for them. */
@Module({
  controllers: [Credentials],
  providers: [
    {
      provide: CredentialStore,
      inject: [DATABASE_POOL, ENVIRONMENT, CLOCK, IDS],
      useFactory: createCredentialStore,
    },
    { provide: MODELS, inject: [CONFIG, ENVIRONMENT, CredentialStore], useFactory: createStoredModels },
  ],
  exports: [MODELS],
})
export class ProvidersModule {}
