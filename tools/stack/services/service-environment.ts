import { join } from 'node:path';
import type { ServiceName } from '@antiphon/contracts/messaging';

/** Where the engines are, for one service, with its own credentials. */
export interface ServiceConnections {
  readonly databaseUrl: string;
  readonly natsUrl: string;
  readonly natsUser?: string | undefined;
  readonly natsPassword?: string | undefined;
  readonly temporalAddress: string;
  /** Null when the server is somebody else's, who alone knows. */
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
  /** Absolute path of the configuration, null for the built-in defaults. */
  readonly config: string | null;
  readonly connections: ServiceConnections;
}

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * All that the sandbox gets of ours: it runs other people's code, and has no use for anybody's keys. Where traces go
 * (a collector's own key with it) its process must know; the cells, which run that code, have no environment at all.
 */
const FOR_SANDBOX =
  /^(PATH|HOME|TMPDIR|LANG|LC_ALL|TZ|ANTIPHON_LOG_LEVEL|NODE_OPTIONS|OTEL_[A-Z_]+|NODE_EXTRA_CA_CERTS|FAILPOINTS)$/;

/** Meant for whoever starts the stack; a service has its own credentials and addresses. */
const NOT_FOR_SERVICES = /^(npm_|INIT_CWD$|ANTIPHON_DATABASE_URL$|ANTIPHON_NATS_URL$|NODE_CHANNEL_)/;

const inherited = (service: ServiceName, env: Environment): Environment =>
  Object.fromEntries(
    Object.entries(env).filter(([name]) =>
      service === 'sandbox' ? FOR_SANDBOX.test(name) : !NOT_FOR_SERVICES.test(name),
    ),
  );

/** The environment of one service process: what it may inherit, and where everything is. */
export const serviceEnvironment = (settings: ServiceSettings, env: Environment): Environment => ({
  ...inherited(settings.service, env),
  // Compiled code is kept between starts, which takes a third off each.
  NODE_COMPILE_CACHE: join(settings.cache, 'node-compile'),
  ANTIPHON_HOME: settings.home,
  ANTIPHON_SERVICE_ID: settings.serviceId,
  ANTIPHON_SERVICE_HTTP_HOST: settings.host,
  ANTIPHON_SERVICE_HTTP_PORT: String(settings.port),
  ANTIPHON_SERVICE_DATABASE_URL: settings.connections.databaseUrl,
  ANTIPHON_SERVICE_NATS_URL: settings.connections.natsUrl,
  ANTIPHON_SERVICE_NATS_USER: settings.connections.natsUser,
  ANTIPHON_SERVICE_NATS_PASSWORD: settings.connections.natsPassword,
  ANTIPHON_TEMPORAL_ADDRESS: settings.connections.temporalAddress,
  ...(settings.connections.temporalUi === null
    ? {}
    : { ANTIPHON_TEMPORAL_UI_URL: settings.connections.temporalUi }),
  ...(settings.config === null ? {} : { ANTIPHON_CONFIG: settings.config }),
});
