import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { homeLayout } from '@antiphon/bootstrap/project';
import type { ServiceName } from '@antiphon/contracts/messaging';
import { z } from 'zod';
import type { RunningChild } from './child-process.js';
import type { Incarnation, ProcessSpec } from './supervised-process.js';

/** Addresses of the engines for one service, with its own credentials. */
export interface ServiceConnections {
  readonly databaseUrl: string;
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
  /** Absolute path of the configuration, null for the built-in defaults. */
  readonly config: string | null;
  readonly connections: ServiceConnections;
}

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Variables that the sandbox inherits. It runs untrusted code, so it gets no provider's key. It
 * gets the traces' collector with its key; the cells that run the code have no environment.
 */
const FOR_SANDBOX =
  /^(PATH|HOME|TMPDIR|LANG|LC_ALL|TZ|ANTIPHON_LOG_LEVEL|NODE_OPTIONS|OTEL_[A-Z_]+|NODE_EXTRA_CA_CERTS|FAILPOINTS)$/;

/** Variables for the stack itself; a service has its own credentials and addresses. */
const NOT_FOR_SERVICES = /^(npm_|INIT_CWD$|ANTIPHON_DATABASE_URL$|ANTIPHON_NATS_URL$|NODE_CHANNEL_)/;

const isInherited = (service: ServiceName, name: string): boolean =>
  service === 'sandbox' ? FOR_SANDBOX.test(name) : !NOT_FOR_SERVICES.test(name);

/** The gateway makes the home's admin key valid, unless the operator names another file. */
const bootstrapKeyFile = (home: string, env: Environment): Environment => ({
  ANTIPHON_BOOTSTRAP_KEY_FILE: env['ANTIPHON_BOOTSTRAP_KEY_FILE'] || homeLayout(home).adminKeyFile,
});

/** Returns the environment of one service process. */
export const serviceEnvironment = (settings: ServiceSettings, env: Environment): Environment => ({
  ...Object.fromEntries(Object.entries(env).filter(([name]) => isInherited(settings.service, name))),
  // Stores compiled code, which shortens each start by a third.
  NODE_COMPILE_CACHE: join(settings.cache, 'node-compile'),
  ANTIPHON_HOME: settings.home,
  ANTIPHON_HOME_PERSISTENT: '1',
  ANTIPHON_SERVICE_ID: settings.serviceId,
  ANTIPHON_SERVICE_HTTP_HOST: settings.host,
  ANTIPHON_SERVICE_HTTP_PORT: String(settings.port),
  ANTIPHON_SERVICE_DATABASE_URL: settings.connections.databaseUrl,
  ANTIPHON_SERVICE_NATS_URL: settings.connections.natsUrl,
  ANTIPHON_SERVICE_NATS_USER: settings.connections.natsUser,
  ANTIPHON_SERVICE_NATS_PASSWORD: settings.connections.natsPassword,
  ANTIPHON_TEMPORAL_ADDRESS: settings.connections.temporalAddress,
  ...(settings.service === 'gateway' ? bootstrapKeyFile(settings.home, env) : {}),
  ...(settings.connections.temporalUi === null
    ? {}
    : { ANTIPHON_TEMPORAL_UI_URL: settings.connections.temporalUi }),
  ...(settings.config === null ? {} : { ANTIPHON_CONFIG: settings.config }),
});

/** Start order of the services; those of one wave start in parallel. Stopping reverses it. */
export const SERVICE_WAVES: readonly (readonly ServiceName[])[] = [
  ['memory', 'metering', 'sandbox'],
  ['agent'],
  ['gateway'],
];

const FIRST_SERVICE_RANK = 10;
const rankOf = (service: ServiceName): number =>
  FIRST_SERVICE_RANK + SERVICE_WAVES.findIndex((wave) => wave.includes(service));

/** Settings that all services of a stack share. */
export interface ServiceContext {
  readonly home: string;
  readonly cache: string;
  readonly logs: string;
  readonly cwd: string;
  readonly env: Environment;
  readonly config: string | null;
  readonly connections: (service: ServiceName) => ServiceConnections;
  /** Returns the program of a service; tests run a smaller one. */
  readonly mainFile: (service: ServiceName) => string;
  readonly releaseLeases: (serviceId: string) => Promise<void>;
}

export interface ServiceInstance {
  readonly service: ServiceName;
  /** From 1. */
  readonly index: number;
  readonly host: string;
  /** Returns the port for the next start; 0 for any. */
  readonly port: () => Promise<number>;
}

const ReadyMessage = z.object({ type: z.literal('ready'), port: z.int().positive().nullish() });

/** Waits for `{type:'ready', port}` on the channel and returns the port. */
const waitForReadyMessage = (child: RunningChild, signal: AbortSignal): Promise<number | null> =>
  new Promise((resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
    child.onMessage((message) => {
      const parsed = ReadyMessage.safeParse(message);
      if (parsed.success) resolve(parsed.data.port ?? null);
    });
  });

/**
 * Flags for a larger young generation. Node begins with 1 MiB, collects it 100 times a second under
 * load and copies what open turns still use. With 8 MiB most of it is garbage by then.
 */
const SERVICE_FLAGS = ['--min-semi-space-size=8', '--max-semi-space-size=16'];

/** Returns how one process of a service is run. */
export const serviceProcess = (instance: ServiceInstance, context: ServiceContext): ProcessSpec => {
  const { service, index, host } = instance;
  const name = `${service}-${index}`;
  const prepare = async (): Promise<Incarnation> => {
    // A new owner of leases for each start: those of the dead process must not look like its own.
    const serviceId = `${name}-${randomBytes(4).toString('hex')}`;
    const { home, cache, config, cwd } = context;
    const settings = { service, serviceId, host, home, cache, config, port: await instance.port() };
    const env = serviceEnvironment({ ...settings, connections: context.connections(service) }, context.env);
    const logFile = join(context.logs, `${name}.log`);
    const args = [...SERVICE_FLAGS, context.mainFile(service)];
    return { serviceId, launch: { command: process.execPath, args, env, cwd, home, logFile, ipc: true } };
  };
  return {
    name,
    rank: rankOf(service),
    stopSignal: 'SIGTERM',
    graceMs: 20_000,
    readyTimeoutMs: 60_000,
    attempts: 2,
    prepare,
    whenReady: waitForReadyMessage,
    afterExit: async ({ serviceId }) => {
      if (serviceId !== undefined) await context.releaseLeases(serviceId);
    },
  };
};
