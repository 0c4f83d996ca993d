import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type pg from 'pg';
import { invalid } from '@antiphon/kernel';
import { inTransaction } from '../pool.js';
import { writeLines } from './table-file.js';

export interface BackedUpTable {
  readonly name: string;
  readonly rows: number;
  /** Hex, of the file `tables/<name>.jsonl.gz`. */
  readonly sha256: string;
}

/** `manifest.json` of a backup. */
export interface BackupManifest<Facts> {
  readonly kind: 'antiphon-backup';
  readonly format: 1;
  /** Names of the migrations that the database had. */
  readonly migrations: readonly string[];
  readonly tables: readonly BackedUpTable[];
  /** What whoever made it wanted to know of the same moment. */
  readonly facts: Facts;
}

export const tableFile = (folder: string, name: string): string => join(folder, 'tables', `${name}.jsonl.gz`);
export const manifestFile = (folder: string): string => join(folder, 'manifest.json');

const PAGE = 500;
const HISTORY = '_prisma_migrations';
const TABLES_SQL = `select c.relname as name from pg_class c where c.relnamespace = 'public'::regnamespace
  and c.relkind in ('r', 'p') and not c.relispartition and c.relname <> '${HISTORY}' order by c.relname`;

const rowsOf = async function* (client: pg.ClientBase, table: string, count: (rows: number) => void) {
  await client.query(
    `declare backup_rows no scroll cursor for select to_jsonb(t)::text as line from public."${table}" t`,
  );
  for (;;) {
    const { rows } = await client.query<{ line: string }>(`fetch ${PAGE} from backup_rows`);
    if (rows.length === 0) break;
    count(rows.length);
    yield rows.map(({ line }) => line);
  }
  await client.query('close backup_rows');
};

const backupTable = async (client: pg.ClientBase, folder: string, name: string): Promise<BackedUpTable> => {
  let rows = 0;
  const sha256 = await writeLines(
    tableFile(folder, name),
    rowsOf(client, name, (more) => (rows += more)),
  );
  return { name, rows, sha256 };
};

const makeFolder = async (folder: string): Promise<void> => {
  await mkdir(join(folder, 'tables'), { recursive: true, mode: 0o700 });
  if ((await readdir(join(folder, 'tables'))).length > 0)
    throw invalid('BACKUP.FOLDER_USED', `${folder} holds a backup already: name a new folder`);
};

/**
 * Writes every row of the database to a folder, as it was at one moment; everything goes on meanwhile. The manifest comes
 * last: a folder without one is no backup. `facts` is asked in the same moment. Rejects with `BACKUP.FOLDER_USED`,
 * `DATABASE.…`, `LOG.UNAVAILABLE`.
 */
export const backupDatabase = async <Facts>(
  pool: pg.Pool,
  folder: string,
  facts: (client: pg.ClientBase) => Promise<Facts>,
): Promise<BackupManifest<Facts>> => {
  await makeFolder(folder);
  const manifest = await inTransaction(pool, async (client): Promise<BackupManifest<Facts>> => {
    await client.query('set transaction isolation level repeatable read, read only');
    await client.query(
      `set local statement_timeout = '30min'; set local idle_in_transaction_session_timeout = '30min'`,
    );
    const known = await facts(client);
    const migrations = await client.query<{ migration_name: string }>(
      `select migration_name from ${HISTORY} where finished_at is not null and rolled_back_at is null order by 1`,
    );
    const { rows } = await client.query<{ name: string }>(TABLES_SQL);
    const tables: BackedUpTable[] = [];
    for (const { name } of rows) tables.push(await backupTable(client, folder, name));
    const names = migrations.rows.map((row) => row.migration_name);
    return { kind: 'antiphon-backup', format: 1, migrations: names, tables, facts: known };
  });
  await writeFile(manifestFile(folder), `${JSON.stringify(manifest, null, 2)}\n`, {
    mode: 0o600,
    flush: true,
  });
  return manifest;
};
