import { ensureEngines, neededEngines } from '@antiphon/bootstrap/engines/resolve-engine';
import type { EngineName, ResolvedEngine } from '@antiphon/bootstrap/types';
import { postgresMajorOf } from '@antiphon/bootstrap/project';
import type { ServiceName } from '@antiphon/contracts/messaging';
import type { ServiceConnections } from '../services/service-environment.js';
import { mountDatabase } from './mount-database.js';
import type { MountedDatabase } from './mount-database.js';
import { mountNats } from './mount-nats.js';
import type { MountedNats } from './mount-nats.js';
import { mountTemporal } from './mount-temporal.js';
import type { MountedTemporal } from './mount-temporal.js';
import type { EngineSource, MountOptions } from './mounted-engine.js';

export interface Engines {
  readonly postgres: MountedDatabase;
  readonly nats: MountedNats;
  readonly temporal: MountedTemporal;
}

export interface EnginesOptions extends MountOptions {
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

const findPrograms = ({
  env,
  cache,
  root,
  context,
  progress,
  signal,
}: EnginesOptions): Promise<Partial<Record<EngineName, ResolvedEngine>>> => {
  const postgresMajor = postgresMajorOf(context.paths.home);
  return ensureEngines(neededEngines(env), { cache, env, root, postgresMajor, signal }, progress);
};

/** The three engines, not started yet. Throws a UserError when a program is neither here nor to be had. */
export const mountEngines = async (options: EnginesOptions): Promise<Engines> => {
  const programs = await findPrograms(options);
  const sourceOf = (name: EngineName): EngineSource => {
    const program = programs[name];
    return program === undefined ? { external: options.env[ADDRESS_VARIABLES[name]] ?? '' } : { program };
  };
  return {
    postgres: mountDatabase(options, sourceOf('postgres')),
    nats: mountNats(options, sourceOf('nats')),
    temporal: mountTemporal(options, sourceOf('temporal')),
  };
};

/** Where one service finds the engines, with its own credentials. */
export const connectionsFor = (engines: Engines, service: ServiceName): ServiceConnections => {
  const nats = engines.nats.accessFor(service);
  return {
    databaseUrl: engines.postgres.serviceUrl(service),
    natsUrl: nats.url,
    natsUser: nats.user,
    natsPassword: nats.password,
    temporalAddress: engines.temporal.address(),
    temporalUi: engines.temporal.uiUrl(),
  };
};
