import { homedir } from 'node:os';
import type pg from 'pg';
import { armFailpoints } from '@antiphon/kernel';
import type { Clock, Ids } from '@antiphon/kernel';
import { loadConfig } from '@antiphon/config';
import type { AntiphonConfig } from '@antiphon/config';
import type { ServiceName } from '@antiphon/contracts/messaging';
import { createPool, holdDatabase } from '@antiphon/database';
import type { DatabaseHold } from '@antiphon/database';
import { createLeaseStore, createPostgresEventStore } from '@antiphon/event-store';
import type { EventStore, EventStorePg, LeaseStore } from '@antiphon/event-store';
import { connectNats, createLogNotifier, createRequestClient } from '@antiphon/messaging';
import type { LocalRequests, NatsLink, RequestClient } from '@antiphon/messaging';
import { createLogger, startTelemetry, systemClock, uuidIds } from '@antiphon/observability';
import type { Logger, Telemetry } from '@antiphon/observability';
import { waitForDatabase } from './dependency-checks.js';
import { failpointsFrom } from './failpoints.js';
import { createHealthRegistry } from './health-registry.js';
import type { HealthRegistry } from './health-registry.js';
import { VERSION, readServiceEnv } from './service-env.js';
import type { Environment, ServiceEnv, ServiceIdentity } from './service-env.js';

/** Connections and services below Nest; PlatformModule provides them by token. */
export interface Platform {
  readonly identity: ServiceIdentity;
  readonly settings: ServiceEnv;
  readonly environment: Environment;
  readonly config: AntiphonConfig;
  readonly logger: Logger;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly pool: pg.Pool;
  /** Keeps a restore from beginning while this process runs. */
  readonly databaseHold: DatabaseHold;
  readonly eventStore: EventStore & EventStorePg;
  readonly leaseStore: LeaseStore;
  readonly nats: NatsLink;
  readonly requests: RequestClient;
  readonly health: HealthRegistry;
  readonly telemetry: Telemetry;
}

export interface PlatformOptions {
  readonly service: ServiceName;
  readonly env: Environment;
  /** Absolute path; relative paths in the environment start here. */
  readonly cwd: string;
  /** Replaces the logger to standard output; for tests. */
  readonly logger?: Logger;
  /** Requests to the services that this process hosts. */
  readonly local?: LocalRequests;
  /** Telemetry of the process, for a service that it hosts. Default: its own. */
  readonly telemetry?: Telemetry;
}

const identityOf = (service: ServiceName, settings: ServiceEnv): ServiceIdentity => ({
  service,
  id: settings.serviceId,
  pid: process.pid,
  version: VERSION,
  startedAt: systemClock.now(),
  home: settings.home,
});

const readServiceConfig = (service: ServiceName, env: Environment, cwd: string): AntiphonConfig =>
  // Only the agent calls providers; other services start without their keys.
  loadConfig({ env, cwd, homeDir: env['HOME'] ?? homedir(), requireKeys: service === 'agent' });

const openNats = (service: ServiceName, settings: ServiceEnv, logger: Logger): Promise<NatsLink> =>
  connectNats({
    url: settings.natsUrl,
    user: settings.natsUser,
    password: settings.natsPassword,
    tls: settings.natsTls,
    service,
    name: settings.serviceId,
    logger,
  });

/** Connections of a service to the database. */
const POOL_SIZE = 8;
/** The gateway admits six heavy requests at once, so that four connections are left for others. */
const POOL_SIZES: Partial<Record<ServiceName, number>> = { gateway: 10 };

const connect = async (
  service: ServiceName,
  settings: ServiceEnv,
  logger: Logger,
): Promise<Pick<Platform, 'pool' | 'databaseHold' | 'nats'>> => {
  const database = { url: settings.databaseUrl, applicationName: `antiphon-${service}`, logger };
  const max = POOL_SIZES[service] ?? POOL_SIZE;
  const pool = createPool({ ...database, max, refuseDuringRestore: true });
  const nats = await openNats(service, settings, logger);
  try {
    await waitForDatabase(pool, logger);
    // Before any use of the log: no service reads or appends to one that is being restored.
    return { pool, nats, databaseHold: await holdDatabase(database) };
  } catch (error) {
    await nats.drain();
    await pool.end();
    throw error;
  }
};

/**
 * Reads environment and configuration, then connects to PostgreSQL and NATS, with retries for 30 s.
 * Throws `SERVICE.BAD_ENVIRONMENT`, `CONFIG.*`, `LOG.UNAVAILABLE`, `MESSAGING.UNAVAILABLE`, or
 * `DATABASE.RESTORE_UNFINISHED` until an interrupted restore is finished or undone.
 */
export const openPlatform = async ({
  service,
  env,
  cwd,
  logger: given,
  local,
  telemetry: ofProcess,
}: PlatformOptions): Promise<Platform> => {
  const settings = readServiceEnv(service, env, () => uuidIds.next());
  const logger = given ?? createLogger({ service, level: settings.logLevel });
  const identity = identityOf(service, settings);
  armFailpoints(failpointsFrom(env['FAILPOINTS']));
  const config = readServiceConfig(service, env, cwd);
  const { id: instanceId, version } = identity;
  const telemetry = ofProcess ?? (await startTelemetry({ service, instanceId, version, env, logger }));
  const { pool, databaseHold, nats } = await connect(service, settings, logger).catch(
    async (error: unknown) => {
      await telemetry.stop();
      throw error;
    },
  );
  return {
    identity,
    settings,
    environment: env,
    config,
    logger,
    clock: systemClock,
    ids: uuidIds,
    pool,
    databaseHold,
    eventStore: createPostgresEventStore(pool, { onAppended: createLogNotifier(nats) }),
    leaseStore: createLeaseStore(pool),
    nats,
    requests: createRequestClient(nats, local),
    health: createHealthRegistry(identity, systemClock, logger),
    telemetry,
  };
};

/** Closes in order of dependency: appends, messages, the database, and telemetry last. */
export const closePlatform = async (platform: Platform): Promise<void> => {
  const { eventStore, nats, pool, databaseHold, telemetry } = platform;
  await eventStore.close();
  await nats.drain();
  await pool.end();
  await databaseHold.release();
  await telemetry.stop();
};
