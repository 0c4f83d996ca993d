import { mkdir, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type pg from 'pg';
import { invalid } from '@antiphon/kernel';
import { fetchPages, ROW_AS_JSON } from '../fetch-pages.js';
import { inTransaction } from '../pool.js';
import { readUnfinishedRestore, unfinishedRestore } from './restore-record.js';
import {
  type BackedUpTable,
  type BackupManifest,
  tableFile,
  writeLines,
  writeManifest,
} from './backup-files.js';

const HISTORY = '_prisma_migrations';
const TABLES_SQL = `select c.relname as name from pg_class c where c.relnamespace = 'public'::regnamespace
  and c.relkind in ('r', 'p') and not c.relispartition and c.relname <> '${HISTORY}' order by c.relname`;
const MIGRATIONS_SQL = `select migration_name as name from ${HISTORY}
  where finished_at is not null and rolled_back_at is null order by 1`;

const readRows = async function* (client: pg.ClientBase, table: string, onRows: (count: number) => void) {
  const query = {
    name: 'backup_rows',
    rows: `select * from public."${table}"`,
    bytes: 'octet_length(to_jsonb(r)::text)',
    columns: `${ROW_AS_JSON} as line`,
  };
  for await (const rows of fetchPages<{ line: string }>(client, query)) {
    onRows(rows.length);
    yield rows.map(({ line }) => line);
  }
};

const backupTable = async (client: pg.ClientBase, folder: string, name: string): Promise<BackedUpTable> => {
  let rows = 0;
  const lines = readRows(client, name, (count) => (rows += count));
  const sha256 = await writeLines(tableFile(folder, name), lines);
  return { name, rows, sha256 };
};

const createFolder = async (folder: string): Promise<void> => {
  await mkdir(join(folder, 'tables'), { recursive: true, mode: 0o700 });
  if ((await readdir(join(folder, 'tables'))).length > 0)
    throw invalid('BACKUP.FOLDER_USED', `${folder} holds a backup already: name a new folder`);
};

const readNames = async (client: pg.ClientBase, sql: string): Promise<string[]> =>
  (await client.query<{ name: string }>(sql)).rows.map(({ name }) => name);

/**
 * Writes every row of the database to a folder, from one snapshot, while the services continue. The
 * manifest is written last: a folder without one is no backup. `readFacts` runs on the same
 * snapshot; `sign` adds a signature to the manifest. Rejects with `BACKUP.FOLDER_USED`,
 * `DATABASE.RESTORE_UNFINISHED`, `DATABASE.…` or `LOG.UNAVAILABLE`.
 */
export const backupDatabase = async <Facts>(
  pool: pg.Pool,
  folder: string,
  readFacts: (client: pg.ClientBase) => Promise<Facts>,
  sign: (manifest: BackupManifest<Facts>) => BackupManifest<Facts> = (manifest) => manifest,
): Promise<BackupManifest<Facts>> => {
  await createFolder(folder);
  const manifest = await inTransaction(pool, async (client): Promise<BackupManifest<Facts>> => {
    await client.query('set transaction isolation level repeatable read, read only');
    // Fails where a policy would hide rows: only the owner's backup is whole.
    await client.query('set local row_security = off');
    await client.query(
      `set local statement_timeout = '30min'; set local idle_in_transaction_session_timeout = '30min';
       set local antiphon.workspace = '*'`,
    );
    const restore = await readUnfinishedRestore(client);
    if (restore !== null) throw unfinishedRestore(restore);
    const facts = await readFacts(client);
    const migrations = await readNames(client, MIGRATIONS_SQL);
    const tables: BackedUpTable[] = [];
    for (const name of await readNames(client, TABLES_SQL))
      tables.push(await backupTable(client, folder, name));
    return { kind: 'antiphon-backup', format: 1, migrations, tables, facts };
  });
  const signed = sign(manifest);
  await writeManifest(folder, signed);
  return signed;
};
