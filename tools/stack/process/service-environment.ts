import { join } from 'node:path';
import { homeLayout } from '@antiphon/bootstrap/project';
import { keyVariablesOf } from '@antiphon/config';
import type { ServiceName } from '@antiphon/contracts/messaging';
import type { ServiceConfiguration } from '../supervisor/configuration.js';

/** Addresses of the engines for one service, with its own credentials. */
export interface ServiceConnections {
  readonly databaseUrl: string;
  /** Address for the archiver; only the memory service has it. */
  readonly archiverUrl?: string;
  readonly natsUrl: string;
  readonly natsUser?: string | undefined;
  readonly natsPassword?: string | undefined;
  readonly temporalAddress: string;
  /** Null for an external server, whose UI is unknown. */
  readonly temporalUi: string | null;
}

export interface ServiceSettings {
  readonly service: ServiceName;
  readonly serviceId: string;
  readonly host: string;
  /** 0 for any. */
  readonly port: number;
  readonly home: string;
  readonly cache: string;
  /** The keys of its providers reach the agent only. */
  readonly configuration: ServiceConfiguration;
  readonly connections: ServiceConnections;
}

export type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Variables that every service inherits. `OTEL_*` has the key of the traces' collector, which each
 * service writes to. The sandbox's cells, which run other people's code, have no environment.
 */
const FOR_ALL =
  /^(PATH|HOME|TMPDIR|TZ|ANTIPHON_LOG_LEVEL|ANTIPHON_(DATABASE|NATS|TEMPORAL)_(CA|CERT|KEY)_FILE|ANTIPHON_TEMPORAL_TLS(_[A-Z_]+)?|NODE_EXTRA_CA_CERTS|SSL_CERT_(FILE|DIR)|OTEL_[A-Z_]+|FAILPOINTS)$/;

/** Variables that one service inherits besides. Every other variable stays with the supervisor. */
const FOR_ONE: Readonly<Record<ServiceName, RegExp>> = {
  gateway: /^ANTIPHON_(GATEWAY_TOKEN|BOOTSTRAP_KEY)$/,
  agent:
    /^(ANTIPHON_(ARCHIVE_FOLDER|FILES_FOLDER|MASTER_KEY|MASTER_KEY_FILE|TEMPORAL_API_KEY(_FILE)?)|AWS_REGION|(HTTPS?|NO|ALL)_PROXY|(https?|no|all)_proxy)$/,
  sandbox: /^ANTIPHON_SANDBOX_LAYERS$/,
  metering: /^$/,
  memory: /^ANTIPHON_(ARCHIVE_FOLDER|LOG_[A-Z_]+)$/,
};

/** Returns the variables of this process that a service may have. */
const inheritedBy = ({ service, configuration }: ServiceSettings, env: Environment): Environment => {
  const { providers } = configuration.config;
  const keys =
    service === 'agent'
      ? providers.flatMap((provider) => [...keyVariablesOf(provider), ...(provider.passEnv ?? [])])
      : [];
  const isInherited = (name: string): boolean =>
    FOR_ALL.test(name) || FOR_ONE[service].test(name) || keys.includes(name);
  return Object.fromEntries(Object.entries(env).filter(([name]) => isInherited(name)));
};

/** Returns the variables with which a service finds the configuration. */
const configurationOf = ({ file, folder, problem, config }: ServiceConfiguration): Environment => ({
  ...(file === null ? {} : { ANTIPHON_CONFIG: file }),
  ...(folder === null ? {} : { ANTIPHON_CONFIG_FOLDER: folder }),
  ...(problem === null ? {} : { ANTIPHON_CONFIG_PROBLEM: problem }),
  // Where no file names a provider, a key decides. Services without the key must decide alike.
  ...(config.providers[0] === undefined ? {} : { ANTIPHON_DEFAULT_PROVIDER: config.providers[0].kind }),
});

/**
 * Returns the paths of the home that a service uses, unless the operator names others. The gateway
 * makes the admin key valid. The agent encrypts credentials by the master key, and writes the files
 * of workspaces. Agent and memory archive old events, which are part of the log, to one folder.
 */
const homePathsOf = ({ service, home }: ServiceSettings, env: Environment): Environment => {
  const { adminKeyFile, archiveFolder, filesFolder, masterKeyFile } = homeLayout(home);
  const archives = { ANTIPHON_ARCHIVE_FOLDER: env['ANTIPHON_ARCHIVE_FOLDER'] || archiveFolder };
  if (service === 'gateway')
    return { ANTIPHON_BOOTSTRAP_KEY_FILE: env['ANTIPHON_BOOTSTRAP_KEY_FILE'] || adminKeyFile };
  if (service === 'agent')
    return {
      ANTIPHON_MASTER_KEY_FILE: env['ANTIPHON_MASTER_KEY_FILE'] || masterKeyFile,
      ANTIPHON_FILES_FOLDER: env['ANTIPHON_FILES_FOLDER'] || filesFolder,
      ...archives,
    };
  return service === 'memory' ? archives : {};
};

/** Returns the environment of one service process: an allow-list, and its own credentials. */
export const serviceEnvironment = (settings: ServiceSettings, env: Environment): Environment => ({
  ...inheritedBy(settings, env),
  // Options for the services alone: those of the user's shell are for other programs.
  ...(env['ANTIPHON_NODE_OPTIONS'] ? { NODE_OPTIONS: env['ANTIPHON_NODE_OPTIONS'] } : {}),
  ...configurationOf(settings.configuration),
  // Stores compiled code, which shortens each start by a third.
  NODE_COMPILE_CACHE: join(settings.cache, 'node-compile'),
  ANTIPHON_HOME: settings.home,
  ANTIPHON_HOME_PERSISTENT: '1',
  ANTIPHON_SERVICE_ID: settings.serviceId,
  ANTIPHON_SERVICE_HTTP_HOST: settings.host,
  ANTIPHON_SERVICE_HTTP_PORT: String(settings.port),
  ANTIPHON_SERVICE_DATABASE_URL: settings.connections.databaseUrl,
  ...(settings.connections.archiverUrl === undefined
    ? {}
    : { ANTIPHON_ARCHIVER_DATABASE_URL: settings.connections.archiverUrl }),
  ANTIPHON_SERVICE_NATS_URL: settings.connections.natsUrl,
  ANTIPHON_SERVICE_NATS_USER: settings.connections.natsUser,
  ANTIPHON_SERVICE_NATS_PASSWORD: settings.connections.natsPassword,
  ANTIPHON_TEMPORAL_ADDRESS: settings.connections.temporalAddress,
  ...homePathsOf(settings, env),
  ...(settings.connections.temporalUi === null
    ? {}
    : { ANTIPHON_TEMPORAL_UI_URL: settings.connections.temporalUi }),
});

/**
 * Returns the variable with the environments of the services that a process hosts, as
 * `readHostedEnvironments` of the service host reads it.
 */
export const renderHostedEnvironments = (
  environments: Readonly<Record<string, Environment>>,
): Environment => ({ ANTIPHON_HOSTED_SERVICES: JSON.stringify(environments) });
