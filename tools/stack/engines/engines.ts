import { ensureEngines, neededEngines } from '@antiphon/bootstrap/engines/resolve-engine';
import { postgresMajorOf } from '@antiphon/bootstrap/project';
import type { EngineName } from '@antiphon/bootstrap/types';
import type { ServiceName } from '@antiphon/contracts/messaging';
import { withDatabaseTls } from '@antiphon/database';
import type { ServiceConnections } from '../process/service-environment.js';
import type { EngineOptions, EngineSource } from './engine.js';
import { createNats } from './nats.js';
import type { NatsEngine } from './nats.js';
import { createDatabase } from './postgres.js';
import type { DatabaseEngine } from './postgres.js';
import { createTemporal } from './temporal.js';
import type { TemporalEngine } from './temporal.js';

export interface Engines {
  readonly postgres: DatabaseEngine;
  readonly nats: NatsEngine;
  readonly temporal: TemporalEngine;
}

export interface EnginesOptions extends EngineOptions {
  readonly root: string;
  readonly cache: string;
  readonly env: NodeJS.ProcessEnv;
  readonly signal: AbortSignal;
}

const ADDRESS_VARIABLES: Readonly<Record<EngineName, string>> = {
  postgres: 'ANTIPHON_DATABASE_URL',
  nats: 'ANTIPHON_NATS_URL',
  temporal: 'ANTIPHON_TEMPORAL_ADDRESS',
};

/** Finds the programs and creates the engines without starting them. Throws a UserError. */
export const createEngines = async (options: EnginesOptions): Promise<Engines> => {
  const { env, cache, root, context, progress, signal } = options;
  const postgresMajor = postgresMajorOf(context.paths.home);
  const programs = await ensureEngines(
    neededEngines(env),
    { cache, env, root, postgresMajor, signal },
    progress,
  );
  const sourceOf = (name: EngineName): EngineSource => {
    const program = programs[name];
    const external = env[ADDRESS_VARIABLES[name]] ?? '';
    if (program !== undefined) return { program };
    return { external: name === 'postgres' ? withDatabaseTls(external, env) : external };
  };
  return {
    postgres: createDatabase(options, sourceOf('postgres')),
    nats: createNats(options, sourceOf('nats')),
    temporal: createTemporal(options, sourceOf('temporal')),
  };
};

/** Returns the addresses of the engines with one service's credentials. */
export const connectionsFor = (engines: Engines, service: ServiceName): ServiceConnections => {
  const nats = engines.nats.accessFor(service);
  return {
    databaseUrl: engines.postgres.serviceUrl(service),
    ...(service === 'memory' && { archiverUrl: engines.postgres.archiverUrl() }),
    natsUrl: nats.url,
    natsUser: nats.user,
    natsPassword: nats.password,
    temporalAddress: engines.temporal.address(),
    temporalUi: engines.temporal.uiUrl(),
  };
};
