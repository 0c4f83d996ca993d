import { join } from 'node:path';
import { SERVICES } from '@antiphon/contracts/messaging';
import type { ServiceName } from '@antiphon/contracts/messaging';
import { createPool, migrate } from '@antiphon/database';
import { createLeaseStore } from '@antiphon/event-store';
import type { Logger } from '@antiphon/observability';
import pg from 'pg';

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

/** Creates the database in a managed PostgreSQL at its first start. */
export const ensureDatabase = (maintenanceUrl: string): Promise<void> =>
  withClient(maintenanceUrl, async (client) => {
    const { rowCount } = await client.query('select from pg_database where datname = $1', [DATABASE]);
    if (rowCount === 0) await client.query(`create database ${DATABASE}`);
  });

/** Roles that log in: one for each service, and the archiver. */
export type LoginRole = ServiceName | 'archiver';

/**
 * Gives each service's role, and the archiver's, a login password. `url` is the owner's. Without a
 * password (`undefined`) a role keeps its login.
 */
export const setPasswords = (
  url: string,
  passwordOf: (role: LoginRole) => string | undefined,
): Promise<void> =>
  withClient(url, async (client) => {
    for (const role of [...SERVICES, 'archiver'] as const) {
      const password = passwordOf(role);
      if (password === undefined) continue;
      await client.query(`alter role antiphon_${role} with login password ${client.escapeLiteral(password)}`);
    }
  });

/** Applies missing migrations and returns their names. */
export const migrateDatabase = (url: string, root: string): Promise<string[]> =>
  migrate(url, join(root, 'prisma', 'migrations'));

/** Releases leases of dead processes, so that other processes need not wait until they expire. */
export interface LeaseReleaser {
  release(ownerPrefix: string): Promise<void>;
  close(): Promise<void>;
}

export const createLeaseReleaser = (url: string, logger: Logger): LeaseReleaser => {
  const pool = createPool({ url, applicationName: 'antiphon-supervisor', max: 1, logger });
  const leases = createLeaseStore(pool);
  return {
    release: async (ownerPrefix) => {
      const released = await leases.releaseOwner(ownerPrefix);
      if (released > 0) logger.info({ owner: ownerPrefix, leases: released }, 'leases released');
    },
    close: () => pool.end(),
  };
};
