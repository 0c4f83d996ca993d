import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { migrate } from '@antiphon/database';

const MIGRATIONS = fileURLToPath(new URL('../../prisma/migrations', import.meta.url));

const asOwner = async (url, work) => {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
};

const urlOf = (adminUrl, name) => {
  const url = new URL(adminUrl);
  url.pathname = `/${name}`;
  return url.href;
};

/** Settings that decide the speed of a commit, printed with the figures. */
export const readSettings = (adminUrl) =>
  asOwner(adminUrl, async (client) => {
    const names = [
      'server_version',
      'fsync',
      'synchronous_commit',
      'full_page_writes',
      'shared_buffers',
      'wal_sync_method',
    ];
    const { rows } = await client.query(
      'select name, current_setting(name) as value from unnest($1::text[]) as name',
      [names],
    );
    return Object.fromEntries(rows.map(({ name, value }) => [name, value]));
  });

/** Returns the bytes of WAL that the server has written since it began. */
export const readWalBytes = (adminUrl) =>
  asOwner(adminUrl, async (client) => {
    const { rows } = await client.query(`select (pg_current_wal_insert_lsn() - '0/0')::float8 as bytes`);
    return rows[0].bytes;
  });

/**
 * Databases of the benchmark's own on the stack's server: the same binaries and settings for
 * everyone.
 */
export const createDatabases = async (adminUrl, names) => {
  const created = new Map();
  await asOwner(adminUrl, async (client) => {
    for (const name of names) {
      const database = `bench_${name}_${process.pid}`;
      await client.query(`create database "${database}"`);
      created.set(name, database);
    }
  });
  return {
    url: (name) => urlOf(adminUrl, created.get(name)),
    migrate: (name) => migrate(urlOf(adminUrl, created.get(name)), MIGRATIONS),
    drop: () =>
      asOwner(adminUrl, async (client) => {
        for (const database of created.values())
          await client.query(`drop database if exists "${database}" with (force)`);
      }),
  };
};
