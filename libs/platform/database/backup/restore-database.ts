import { cp, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type pg from 'pg';
import { conflict, invalid, rejected } from '@antiphon/kernel';
import { migrate, readMigrations } from '../migrate.js';
import { createPool, inTransaction } from '../pool.js';
import { manifestFile, tableFile } from './backup-database.js';
import type { BackupManifest } from './backup-database.js';
import { checkFile, readLines } from './table-file.js';

export interface RestoreOptions {
  /** Of an existing database, as its owner. Whatever its schema `public` holds is replaced. */
  readonly url: string;
  readonly folder: string;
  readonly migrationsDir: string;
  /** Runs in the transaction that puts the rows in, after the last of them. `old`: the schema that is being replaced. */
  readonly finish: (client: pg.ClientBase, old: string) => Promise<void>;
}

const PAGE = 500;
const OLD = 'antiphon_before_restore';
const PATIENCE = `set local statement_timeout = '30min'; set local idle_in_transaction_session_timeout = '30min'`;

/** Throws `BACKUP.DAMAGED` when there is no whole backup in the folder. */
export const readManifest = async <Facts>(folder: string): Promise<BackupManifest<Facts>> => {
  try {
    const manifest = JSON.parse(await readFile(manifestFile(folder), 'utf8')) as BackupManifest<Facts>;
    if (manifest.kind === 'antiphon-backup' && manifest.format === 1) return manifest;
  } catch (cause) {
    throw invalid('BACKUP.DAMAGED', `${folder} holds no whole backup: ${(cause as Error).message}`, {
      cause,
    });
  }
  throw invalid('BACKUP.DAMAGED', `${folder} holds no backup that this version reads`);
};

const USERS_SQL = `select distinct application_name as name from pg_stat_activity
  where datname = current_database() and pid <> pg_backend_pid() and application_name like 'antiphon-%'
    and application_name not in ('antiphon-restore', 'antiphon-supervisor') order by 1`;

/** A service that goes on would append what it remembers of the other history. */
const refuseUsed = async (pool: pg.Pool): Promise<void> => {
  const { rows } = await pool.query<{ name: string }>(USERS_SQL);
  if (rows.length === 0) return;
  const names = rows.map(({ name }) => name).join(', ');
  throw conflict('BACKUP.DATABASE_USED', `${names} still use the database: stop all services, then restore`);
};

/** Throws `BACKUP.NEWER` for a backup that has migrations which this version lacks. */
const migrateAsThen = async (url: string, migrationsDir: string, names: readonly string[]): Promise<void> => {
  const known = new Set((await readMigrations(migrationsDir)).map(({ name }) => name));
  const missing = names.filter((name) => !known.has(name));
  if (missing.length > 0)
    throw rejected('BACKUP.NEWER', `the backup is of a newer version: this one lacks ${missing.join(', ')}`);
  const then = await mkdtemp(join(tmpdir(), 'antiphon-migrations-'));
  try {
    for (const name of names) await cp(join(migrationsDir, name), join(then, name), { recursive: true });
    await migrate(url, then);
  } finally {
    await rm(then, { recursive: true });
  }
};

const columnsOf = async (client: pg.ClientBase, table: string): Promise<string> => {
  const { rows } = await client.query<{ name: string }>(
    `select quote_ident(attname) as name from pg_attribute
     where attrelid = format('public.%I', $1::text)::regclass and attnum > 0 and not attisdropped and attgenerated = ''`,
    [table],
  );
  return rows.map(({ name }) => name).join(', ');
};

const fillTable = async (client: pg.ClientBase, folder: string, table: string): Promise<void> => {
  const columns = await columnsOf(client, table);
  // What migrations put there is in the backup too.
  await client.query(`delete from public."${table}"`);
  const sql = `insert into public."${table}" (${columns})
    select ${columns} from unnest($1::text[]) l cross join lateral jsonb_populate_record(null::public."${table}", l::jsonb)`;
  for await (const lines of readLines(tableFile(folder, table), PAGE)) await client.query(sql, [lines]);
};

const moveAway = async (pool: pg.Pool): Promise<void> =>
  inTransaction(pool, async (client) => {
    await client.query(`drop schema if exists ${OLD} cascade`);
    await client.query(`alter schema public rename to ${OLD}`);
    await client.query('create schema public');
  });

const moveBack = async (pool: pg.Pool): Promise<void> =>
  inTransaction(pool, async (client) => {
    await client.query('drop schema if exists public cascade');
    await client.query(`alter schema ${OLD} rename to public`);
  });

/**
 * Replaces a database by a backup: the schema as it was then, every row, and what `finish` does, or, if anything fails,
 * the database as it was. No service may use it. Rejects with `BACKUP.DAMAGED`, `BACKUP.DATABASE_USED`, `BACKUP.NEWER`,
 * `DATABASE.…`.
 */
export const restoreDatabase = async <Facts>(options: RestoreOptions): Promise<BackupManifest<Facts>> => {
  const { url, folder, migrationsDir, finish } = options;
  const manifest = await readManifest<Facts>(folder);
  for (const { name, sha256 } of manifest.tables) await checkFile(tableFile(folder, name), sha256);
  const pool = createPool({ url, applicationName: 'antiphon-restore', max: 2 });
  try {
    await refuseUsed(pool);
    await moveAway(pool);
    try {
      await migrateAsThen(url, migrationsDir, manifest.migrations);
      await inTransaction(pool, async (client) => {
        await client.query(PATIENCE);
        for (const { name } of manifest.tables) await fillTable(client, folder, name);
        await finish(client, OLD);
      });
    } catch (error) {
      await moveBack(pool);
      throw error;
    }
    await pool.query(`drop schema ${OLD} cascade`);
    return manifest;
  } finally {
    await pool.end();
  }
};
