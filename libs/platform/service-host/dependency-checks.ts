import type pg from 'pg';
import { isAppError, retry, transient } from '@antiphon/kernel';
import { assertDurable, translateDatabaseError } from '@antiphon/database';
import { openJetStreamManager } from '@antiphon/messaging';
import type { StreamName } from '@antiphon/messaging';
import { observeGauges } from '@antiphon/observability';
import type { Logger } from '@antiphon/observability';
import { readTemporalServer, toClientOptions } from '@antiphon/temporal/server';
import type { TemporalServer } from '@antiphon/temporal/server';
import type { Platform } from './platform.js';

const DATABASE_TIMEOUT_MS = 30_000;
const DATABASE_RETRY_MS = 500;

/**
 * Waits until PostgreSQL responds and its durability settings are confirmed. Gives up after 30 s.
 */
export const waitForDatabase = (pool: pg.Pool, logger: Logger): Promise<void> =>
  retry(() => assertDurable(pool), {
    firstMs: DATABASE_RETRY_MS,
    maxMs: DATABASE_RETRY_MS,
    withinMs: DATABASE_TIMEOUT_MS,
    isRetryable: (error) => isAppError(error) && error.kind === 'transient',
    onRetry: (err) => logger.warn({ err }, 'database unreachable at start, retrying'),
  });

const checkDatabase = async (pool: pg.Pool): Promise<void> => {
  await pool.query('select 1').catch((error: unknown) => {
    throw translateDatabaseError(error);
  });
};

/** Problem of the configuration file, where the supervisor passes the last good one instead. */
const CONFIG_PROBLEM = 'ANTIPHON_CONFIG_PROBLEM';

/** Adds the health checks that every service has: PostgreSQL and NATS. */
export const addPlatformChecks = ({ health, pool, nats, environment, logger }: Platform): void => {
  const problem = environment[CONFIG_PROBLEM];
  if (problem) {
    logger.error({ problem }, 'configuration broken, last good used');
    health.addFact('configurationProblem', () => problem);
  }
  health.addCheck('postgresql', () => checkDatabase(pool));
  health.addCheck('nats', async () => {
    if (!nats.isConnected()) throw transient('MESSAGING.UNAVAILABLE', 'NATS cannot be reached');
    await nats.connection.flush();
  });
};

/** Adds a health check that reads each of these JetStream streams. */
export const addStreamCheck = async (
  { health, nats }: Platform,
  names: readonly StreamName[],
): Promise<void> => {
  const manager = await openJetStreamManager(nats.connection);
  health.addCheck('jetstream', async () => {
    for (const name of names) await manager.streams.info(name);
  });
};

const TEMPORAL_NAMESPACE = 'antiphon';
const TEMPORAL_DEADLINE_MS = 900;

/**
 * Connects at the first use: the client takes 20 MB and 200 ms, which a start must not wait for.
 */
const createLazyConnection = (server: TemporalServer) => {
  const connect = async () => (await import('@temporalio/client')).Connection.lazy(toClientOptions(server));
  let connection: ReturnType<typeof connect> | null = null;
  return {
    get: () => (connection ??= connect()),
    close: async () => (await connection)?.close(),
  };
};

/**
 * Adds a health check that Temporal responds for our namespace. Returns a function that closes its
 * connection.
 */
export const addTemporalCheck = ({ environment, health }: Platform): (() => Promise<void>) => {
  const server = readTemporalServer(environment);
  if (server === undefined) {
    const missing = transient('TEMPORAL.UNAVAILABLE', 'ANTIPHON_TEMPORAL_ADDRESS is not set');
    health.addCheck('temporal', () => Promise.reject(missing));
    return () => Promise.resolve();
  }
  const lazy = createLazyConnection(server);
  health.addCheck('temporal', async () => {
    const connection = await lazy.get();
    const describe = () => connection.workflowService.describeNamespace({ namespace: TEMPORAL_NAMESPACE });
    await connection.withDeadline(Date.now() + TEMPORAL_DEADLINE_MS, describe).catch((cause: unknown) => {
      throw transient('TEMPORAL.UNAVAILABLE', 'Temporal cannot be reached', { cause });
    });
  });
  return lazy.close;
};

/** Returns the checks of all services of a process. A dependency that fails for one is down. */
const dependenciesOf = async (
  services: readonly Pick<Platform, 'health'>[],
): Promise<Map<string, boolean>> => {
  const up = new Map<string, boolean>();
  for (const { health } of services)
    for (const { name, healthy } of (await health.report()).checks)
      up.set(name, healthy && (up.get(name) ?? true));
  return up;
};

/**
 * Reports the state of the dependencies of a process as gauges, over all services in it. Returns a
 * function that stops it.
 */
export const observePlatforms = (services: readonly Pick<Platform, 'pool' | 'health'>[]): (() => void) =>
  observeGauges(
    {
      antiphon_dependency_up: '1 while a dependency of this process passes its health check, else 0',
      antiphon_database_connections:
        'Connections to PostgreSQL by state: open, idle (part of open), waiting (requests for one)',
    },
    async (report) => {
      const sum = (count: 'totalCount' | 'idleCount' | 'waitingCount'): number =>
        services.reduce((total, { pool }) => total + pool[count], 0);
      report('antiphon_database_connections', sum('totalCount'), { state: 'open' });
      report('antiphon_database_connections', sum('idleCount'), { state: 'idle' });
      report('antiphon_database_connections', sum('waitingCount'), { state: 'waiting' });
      for (const [dependency, isUp] of await dependenciesOf(services))
        report('antiphon_dependency_up', isUp ? 1 : 0, { dependency });
    },
  );
