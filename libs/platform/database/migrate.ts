import { createHash, randomUUID } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import pg from 'pg';
import { bug, rejected } from '@antiphon/kernel';
import { assertNoRestore } from './backup/hold-database.js';
import { translateDatabaseError } from './database-error.js';

/** Advisory lock of Prisma's own engine, so that the two never migrate at the same time. */
const PRISMA_LOCK = 72707369;

const HISTORY_TABLE = `create table if not exists _prisma_migrations (
  id varchar(36) primary key not null, checksum varchar(64) not null, finished_at timestamptz,
  migration_name varchar(255) not null, logs text, rolled_back_at timestamptz,
  started_at timestamptz not null default now(), applied_steps_count integer not null default 0)`;

export interface MigrateOptions {
  /** True for the restore itself, which holds the database alone. */
  readonly duringRestore?: boolean;
}

export interface Migration {
  /** Folder name, `<timestamp>_<name>`; migrations are applied in this order. */
  readonly name: string;
  readonly sql: string;
  /** SHA-256 (hex) of the SQL, as Prisma stores it. */
  readonly checksum: string;
}

/** Reads every `<dir>/<name>/migration.sql`, in the order of the names. */
export const readMigrations = async (migrationsDir: string): Promise<Migration[]> => {
  const entries = await readdir(migrationsDir, { withFileTypes: true });
  const names = entries
    .filter((entry) => entry.isDirectory())
    .map((entry) => entry.name)
    .sort();
  return Promise.all(
    names.map(async (name) => {
      const sql = await readFile(join(migrationsDir, name, 'migration.sql'), 'utf8');
      return { name, sql, checksum: createHash('sha256').update(sql).digest('hex') };
    }),
  );
};

const readAppliedChecksums = async (client: pg.Client): Promise<Map<string, string>> => {
  const { rows } = await client.query<{ migration_name: string; checksum: string; finished_at: Date | null }>(
    'select migration_name, checksum, finished_at from _prisma_migrations where rolled_back_at is null',
  );
  const unfinished = rows.find((row) => row.finished_at === null);
  if (unfinished !== undefined)
    throw bug(
      'DATABASE.MIGRATION_FAILED',
      `migration ${unfinished.migration_name} failed earlier; repair the database or restore a backup first`,
    );
  return new Map(rows.map((row) => [row.migration_name, row.checksum]));
};

const applyOne = async (client: pg.Client, { name, sql, checksum }: Migration): Promise<void> => {
  await client.query('begin');
  try {
    await client.query(sql);
    await client.query(
      `insert into _prisma_migrations (id, checksum, migration_name, started_at, finished_at, applied_steps_count)
       values ($1, $2, $3, now(), clock_timestamp(), 1)`,
      [randomUUID(), checksum, name],
    );
    await client.query('commit');
  } catch (cause) {
    await client.query('rollback');
    throw bug('DATABASE.MIGRATION_FAILED', `migration ${name} failed: ${(cause as Error).message}`, {
      cause,
    });
  }
};

const applyAll = async (client: pg.Client, migrations: readonly Migration[]): Promise<string[]> => {
  await client.query('select pg_advisory_lock($1)', [PRISMA_LOCK]);
  await client.query(HISTORY_TABLE);
  const applied = await readAppliedChecksums(client);
  const edited = migrations.find(({ name, checksum }) => applied.has(name) && applied.get(name) !== checksum);
  if (edited !== undefined)
    throw rejected(
      'DATABASE.MIGRATION_EDITED',
      `migration ${edited.name} was edited after it was applied to this database. What to do: restore the file as it was, or start with an empty database (another ANTIPHON_HOME)`,
    );
  const pending = migrations.filter(({ name }) => !applied.has(name));
  for (const migration of pending) await applyOne(client, migration);
  return pending.map(({ name }) => name);
};

/**
 * Applies pending migrations and returns their names. Each runs in one transaction. The history is
 * the one that `prisma migrate status` reads. A second process waits until the first has finished.
 * Throws `DATABASE.RESTORE_UNFINISHED` or `DATABASE.RESTORE_RUNS`: a restore applies the backup's
 * migrations itself.
 */
export const migrate = async (
  databaseUrl: string,
  migrationsDir: string,
  { duringRestore = false }: MigrateOptions = {},
): Promise<string[]> => {
  const migrations = await readMigrations(migrationsDir);
  const client = new pg.Client({ connectionString: databaseUrl, application_name: 'antiphon-migrate' });
  try {
    await client.connect();
    if (!duringRestore) await assertNoRestore(client);
    return await applyAll(client, migrations);
  } catch (error) {
    throw translateDatabaseError(error);
  } finally {
    await client.end();
  }
};
