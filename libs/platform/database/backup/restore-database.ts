import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type pg from 'pg';
import { conflict, rejected } from '@antiphon/kernel';
import { migrate, readMigrations } from '../migrate.js';
import { createPool, inTransaction } from '../pool.js';
import { type BackupManifest, checkFile, readLines, readManifest, tableFile } from './backup-files.js';

export interface RestoreOptions {
  /** URL of an existing database, as its owner. The restore replaces its schema `public`. */
  readonly url: string;
  readonly folder: string;
  readonly migrationsDir: string;
  /** Runs in the restoring transaction after the last row. `old`: name of the replaced schema. */
  readonly finish: (client: pg.ClientBase, old: string) => Promise<void>;
}

const PAGE = 500;
const OLD_SCHEMA = 'antiphon_before_restore';
const LONG_TIMEOUTS = `set local statement_timeout = '30min'; set local idle_in_transaction_session_timeout = '30min'`;

const USERS_SQL = `select distinct application_name as name from pg_stat_activity
  where datname = current_database() and pid <> pg_backend_pid() and application_name like 'antiphon-%'
    and application_name not in ('antiphon-restore', 'antiphon-supervisor') order by 1`;

/** Refuses to restore under a running service, which would append facts of the replaced history. */
const refuseUsedDatabase = async (pool: pg.Pool): Promise<void> => {
  const { rows } = await pool.query<{ name: string }>(USERS_SQL);
  if (rows.length === 0) return;
  const names = rows.map(({ name }) => name).join(', ');
  throw conflict('BACKUP.DATABASE_USED', `${names} still use the database: stop all services, then restore`);
};

/**
 * Applies only the migrations of the backup. Throws `BACKUP.NEWER` for a backup with a migration
 * that this version lacks.
 */
const migrateToBackup = async (
  url: string,
  migrationsDir: string,
  names: readonly string[],
): Promise<void> => {
  const known = new Set((await readMigrations(migrationsDir)).map(({ name }) => name));
  const missing = names.filter((name) => !known.has(name));
  if (missing.length > 0)
    throw rejected('BACKUP.NEWER', `the backup is of a newer version: this one lacks ${missing.join(', ')}`);
  const folder = await mkdtemp(join(tmpdir(), 'antiphon-migrations-'));
  try {
    for (const name of names) await cp(join(migrationsDir, name), join(folder, name), { recursive: true });
    await migrate(url, folder);
  } finally {
    await rm(folder, { recursive: true });
  }
};

const readColumns = async (client: pg.ClientBase, table: string): Promise<string> => {
  const { rows } = await client.query<{ name: string }>(
    `select quote_ident(attname) as name from pg_attribute
     where attrelid = format('public.%I', $1::text)::regclass and attnum > 0 and not attisdropped and attgenerated = ''`,
    [table],
  );
  return rows.map(({ name }) => name).join(', ');
};

const fillTable = async (client: pg.ClientBase, folder: string, table: string): Promise<void> => {
  const columns = await readColumns(client, table);
  // The backup also has the rows that migrations have inserted.
  await client.query(`delete from public."${table}"`);
  const sql = `insert into public."${table}" (${columns})
    select ${columns} from unnest($1::text[]) l cross join lateral jsonb_populate_record(null::public."${table}", l::jsonb)`;
  for await (const lines of readLines(tableFile(folder, table), PAGE)) await client.query(sql, [lines]);
};

const replaceSchema = async (pool: pg.Pool): Promise<void> =>
  inTransaction(pool, async (client) => {
    await client.query(`drop schema if exists ${OLD_SCHEMA} cascade`);
    await client.query(`alter schema public rename to ${OLD_SCHEMA}`);
    await client.query('create schema public');
  });

const undoReplaceSchema = async (pool: pg.Pool): Promise<void> =>
  inTransaction(pool, async (client) => {
    await client.query('drop schema if exists public cascade');
    await client.query(`alter schema ${OLD_SCHEMA} rename to public`);
  });

/**
 * Replaces a database by a backup: its schema, every row, and the changes of `finish`. If a step
 * fails, the database stays as it was. No service may use it during the restore. Rejects with
 * `BACKUP.DAMAGED`, `BACKUP.DATABASE_USED`, `BACKUP.NEWER` or `DATABASE.…`.
 */
export const restoreDatabase = async <Facts>(options: RestoreOptions): Promise<BackupManifest<Facts>> => {
  const { url, folder, migrationsDir, finish } = options;
  const manifest = await readManifest<Facts>(folder);
  for (const { name, sha256 } of manifest.tables) await checkFile(tableFile(folder, name), sha256);
  const pool = createPool({ url, applicationName: 'antiphon-restore', max: 2 });
  try {
    await refuseUsedDatabase(pool);
    await replaceSchema(pool);
    try {
      await migrateToBackup(url, migrationsDir, manifest.migrations);
      await inTransaction(pool, async (client) => {
        await client.query(LONG_TIMEOUTS);
        for (const { name } of manifest.tables) await fillTable(client, folder, name);
        await finish(client, OLD_SCHEMA);
      });
    } catch (error) {
      await undoReplaceSchema(pool);
      throw error;
    }
    await pool.query(`drop schema ${OLD_SCHEMA} cascade`);
    return manifest;
  } finally {
    await pool.end();
  }
};
