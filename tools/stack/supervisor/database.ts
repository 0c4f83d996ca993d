import { join } from 'node:path';
import pg from 'pg';
import { SERVICES } from '@antiphon/contracts/messaging';
import type { ServiceName } from '@antiphon/contracts/messaging';
import { createPool, migrate } from '@antiphon/database';
import { createLeaseStore } from '@antiphon/event-store';
import type { Logger } from '@antiphon/observability';

const DATABASE = 'antiphon';

const withClient = async <T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> => {
  const client = new pg.Client({ connectionString: url, application_name: 'antiphon-supervisor' });
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
};

/** Makes the database of a PostgreSQL of our own, at its first start. */
export const ensureDatabase = (maintenanceUrl: string): Promise<void> =>
  withClient(maintenanceUrl, async (client) => {
    const { rowCount } = await client.query('select from pg_database where datname = $1', [DATABASE]);
    if (rowCount === 0) await client.query(`create database ${DATABASE}`);
  });

/** Lets each service log in under its own role; `url` as the owner of the roles. */
export const setServicePasswords = (
  url: string,
  passwordOf: (service: ServiceName) => string,
): Promise<void> =>
  withClient(url, async (client) => {
    for (const service of SERVICES) {
      const password = client.escapeLiteral(passwordOf(service));
      await client.query(`alter role antiphon_${service} with login password ${password}`);
    }
  });

/** Brings the database up to date; answers the names of what was applied now. */
export const migrateDatabase = (url: string, root: string): Promise<string[]> =>
  migrate(url, join(root, 'prisma', 'migrations'));

/** Frees leases of processes that are known to be dead, so that nobody waits for them to lapse. */
export interface LeaseReleaser {
  release(ownerPrefix: string): Promise<void>;
  close(): Promise<void>;
}

export const createLeaseReleaser = (url: string, logger: Logger): LeaseReleaser => {
  const pool = createPool({ url, applicationName: 'antiphon-supervisor', max: 1, logger });
  const leases = createLeaseStore(pool);
  return {
    release: async (ownerPrefix) => {
      const freed = await leases.releaseOwner(ownerPrefix);
      if (freed > 0) logger.info({ owner: ownerPrefix, leases: freed }, 'freed the leases of a dead process');
    },
    close: () => pool.end(),
  };
};
