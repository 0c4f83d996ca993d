import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type pg from 'pg';
import { failpoint, invalid, rejected } from '@antiphon/kernel';
import { migrate, readMigrations } from '../migrate.js';
import { type BackedUpTable, readLines } from './backup-files.js';

const PAGE = 500;
const SETTINGS = `set local statement_timeout = '30min'; set local idle_in_transaction_session_timeout = '30min';
  set local antiphon.workspace = '*'`;

/**
 * Applies only the migrations of the backup. Throws `BACKUP.NEWER` for a backup with a migration
 * that this version lacks.
 */
export const migrateToBackup = async (
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
    await migrate(url, folder, { duringRestore: true });
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

const fillTable = async (client: pg.ClientBase, folder: string, backedUp: BackedUpTable): Promise<void> => {
  const table = backedUp.name;
  const columns = await readColumns(client, table);
  // The backup also has the rows that migrations have inserted.
  await client.query(`delete from public."${table}"`);
  const sql = `insert into public."${table}" (${columns})
    select ${columns} from unnest($1::text[]) l cross join lateral jsonb_populate_record(null::public."${table}", l::jsonb)`;
  for await (const lines of readLines(folder, backedUp, PAGE)) await client.query(sql, [lines]);
};

const OWN_TABLES_SQL = `select c.relname as name from pg_class c where c.relnamespace = 'public'::regnamespace
  and c.relkind in ('r', 'p') and not c.relispartition and c.relname <> '_prisma_migrations'`;

/** Throws `BACKUP.DAMAGED` for a table that the migrations of the backup do not create. */
const requireOwnTables = async (client: pg.ClientBase, tables: readonly BackedUpTable[]): Promise<void> => {
  const { rows } = await client.query<{ name: string }>(OWN_TABLES_SQL);
  const own = new Set(rows.map(({ name }) => name));
  const foreign = tables.find(({ name }) => !own.has(name));
  if (foreign)
    throw invalid(
      'BACKUP.DAMAGED',
      `the backup has a table ${foreign.name}, which its migrations do not create`,
    );
};

/** Replaces the rows of every table by those of the backup, in the caller's transaction. */
export const fillTables = async (
  client: pg.ClientBase,
  folder: string,
  tables: readonly BackedUpTable[],
): Promise<void> => {
  await client.query(SETTINGS);
  await requireOwnTables(client, tables);
  for (const table of tables) {
    await fillTable(client, folder, table);
    await failpoint('restore.table.filled');
  }
};
