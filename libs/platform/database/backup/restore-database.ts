import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { bug, failpoint, invalid, rejected } from '@antiphon/kernel';
import { type BackupManifest, checkFile, readManifest, readManifestText, tableFile } from './backup-files.js';
import { fillTables, migrateToBackup } from './fill-schema.js';
import { RESTORE_APPLICATION, withRestoreLock } from './hold-database.js';
import {
  type RestoreRecord,
  hashManifest,
  insertRestore,
  readRestores,
  readUnfinishedRestore,
  unfinishedRestore,
  updateRestore,
} from './restore-record.js';

export interface RestoreOptions<Outcome> {
  /** URL of an existing database, as its owner. The restore replaces its schema `public`. */
  readonly url: string;
  readonly migrationsDir: string;
  /**
   * Runs in the restoring transaction after the last row; its value is stored with the marker. An
   * error brings the data before the restore back. `old`: name of the schema with that data.
   */
  readonly finish: (client: pg.ClientBase, old: string) => Promise<Outcome>;
  /** Runs on the manifest before anything is changed; an error refuses the backup. */
  readonly checkManifest?: (manifest: BackupManifest<unknown>) => void | Promise<void>;
  /**
   * Deletes what other engines derived from the replaced data, while services are still refused. It
   * runs again when the restore is resumed.
   */
  readonly deleteDerived?: (outcome: Outcome) => Promise<void>;
}

export interface Restored<Facts, Outcome> {
  readonly manifest: BackupManifest<Facts>;
  readonly outcome: Outcome;
  /** Schema with the replaced data; null for an empty one. */
  readonly oldSchema: string | null;
}

const ADOPT_SETTINGS = `set local statement_timeout = '30min'; set local antiphon.workspace = '*'`;
/** Roles of services, which may not read the replaced data. */
const SERVICE_ROLES_SQL = `select string_agg(quote_ident(rolname), ', ') as names from pg_roles
  where rolname like 'antiphon\\_%'`;

const inTransaction = async <T>(client: pg.Client, work: () => Promise<T>): Promise<T> => {
  await client.query('begin');
  try {
    const result = await work();
    await client.query('commit');
    return result;
  } catch (error) {
    // A broken connection has rolled back by itself.
    await client.query('rollback').catch(() => undefined);
    throw error;
  }
};

const oldSchemaName = (): string =>
  `antiphon_before_restore_${new Date().toISOString().replaceAll(/\D/g, '')}`;

/**
 * Moves the present data away and writes the marker, in one transaction: no moment shows an empty
 * database without a marker.
 */
const begin = async (client: pg.Client, folder: string): Promise<RestoreRecord> => {
  const manifestSha256 = hashManifest(await readManifestText(folder));
  const record = { id: randomUUID(), folder, manifestSha256, oldSchema: oldSchemaName() };
  await inTransaction(client, async () => {
    await insertRestore(client, record);
    await client.query(`alter schema public rename to ${record.oldSchema}`);
    await client.query('create schema public');
  });
  await failpoint('restore.schema.replaced');
  return { ...record, phase: 'building', beganAt: new Date().toISOString(), outcome: null };
};

/** Brings the data before the restore back. Its partial result is dropped. */
const undo = async (client: pg.Client, { id, oldSchema }: RestoreRecord): Promise<void> => {
  await failpoint('restore.undo.begun');
  await inTransaction(client, async () => {
    await client.query('drop schema if exists public cascade');
    await client.query(`alter schema ${oldSchema} rename to public`);
    await updateRestore(client, id, 'undone');
  });
};

/** Undoes a failed restore. If that fails too, the error names both ways out. */
const undoAfter = async (client: pg.Client, record: RestoreRecord, error: unknown): Promise<never> => {
  try {
    await undo(client, record);
  } catch (cause) {
    throw bug(
      'BACKUP.UNDO_FAILED',
      `the restore failed (${(error as Error).message}), and the data before it could not be brought back ` +
        `(${(cause as Error).message}). It is in the schema ${record.oldSchema}. What to do: repair the ` +
        'database (is its disk full?), then `antiphon restore --undo` or `antiphon restore --resume`',
      { cause: error },
    );
  }
  throw error;
};

/** Builds the backup's schema and commits its rows. The marker then says `filled`. */
const build = async <Outcome>(
  client: pg.Client,
  record: RestoreRecord,
  manifest: BackupManifest<unknown>,
  options: RestoreOptions<Outcome>,
): Promise<Outcome> => {
  await migrateToBackup(options.url, options.migrationsDir, manifest.migrations);
  await failpoint('restore.schema.migrated');
  const outcome = await inTransaction(client, async () => {
    await fillTables(client, record.folder, manifest.tables);
    const result = await options.finish(client, record.oldSchema);
    await updateRestore(client, record.id, 'filled', result ?? null);
    await failpoint('restore.rows.written');
    return result;
  });
  await failpoint('restore.rows.committed');
  return outcome;
};

/** Closes the replaced data to services. Returns its schema, or null if there was no data. */
const closeOldSchema = async (client: pg.Client, schema: string): Promise<string | null> => {
  const { rows } = await client.query<{ used: boolean }>(
    'select exists (select from pg_class where relnamespace = to_regnamespace($1)) as used',
    [schema],
  );
  if (rows[0]?.used !== true) {
    await client.query(`drop schema ${schema}`);
    return null;
  }
  const roles = (await client.query<{ names: string | null }>(SERVICE_ROLES_SQL)).rows[0]?.names;
  await client.query(`revoke all on schema ${schema} from public${roles ? `, ${roles}` : ''}`);
  return schema;
};

/** Runs the steps after the rows are committed, and removes the marker as the last one. */
const complete = async <Outcome>(
  client: pg.Client,
  record: RestoreRecord,
  outcome: Outcome,
  options: RestoreOptions<Outcome>,
): Promise<string | null> => {
  try {
    await options.deleteDerived?.(outcome);
  } catch (cause) {
    const reason = (cause as Error).message;
    throw rejected(
      'BACKUP.NOT_FINISHED',
      `every row is restored, but data of other engines could not be deleted: ${reason}. ` +
        'Services refuse to start until then. What to do: repair it, then `antiphon restore --resume`',
      { cause },
    );
  }
  await failpoint('restore.derived.deleted');
  const old = await inTransaction(client, async () => {
    const kept = await closeOldSchema(client, record.oldSchema);
    await updateRestore(client, record.id, 'finished');
    return kept;
  });
  await failpoint('restore.marker.removed');
  return old;
};

const readChecked = async <Facts>(
  folder: string,
  { checkManifest }: Pick<RestoreOptions<unknown>, 'checkManifest'>,
): Promise<BackupManifest<Facts>> => {
  const manifest = await readManifest<Facts>(folder);
  await checkManifest?.(manifest);
  for (const { name, sha256 } of manifest.tables) await checkFile(tableFile(folder, name), sha256);
  return manifest;
};

/**
 * Replaces a database by a backup: its schema, every row, and the changes of `finish`. The replaced
 * data stays in a schema with a timestamp in its name. If a step before the last commit fails, the
 * database stays as it was. Rejects with `BACKUP.DAMAGED`, `BACKUP.DATABASE_USED`, `BACKUP.NEWER`,
 * `BACKUP.NOT_FINISHED`, `BACKUP.UNDO_FAILED`, `DATABASE.RESTORE_UNFINISHED` or `DATABASE.…`.
 */
export const restoreDatabase = async <Facts, Outcome>(
  options: RestoreOptions<Outcome> & { readonly folder: string },
): Promise<Restored<Facts, Outcome>> => {
  const manifest = await readChecked<Facts>(options.folder, options);
  return withRestoreLock(options.url, async (client) => {
    const unfinished = await readUnfinishedRestore(client);
    if (unfinished !== null) throw unfinishedRestore(unfinished);
    await failpoint('restore.lock.taken');
    const record = await begin(client, options.folder);
    const outcome = await build(client, record, manifest, options).catch((error: unknown) =>
      undoAfter(client, record, error),
    );
    return { manifest, outcome, oldSchema: await complete(client, record, outcome, options) };
  });
};

const takeUnfinished = async (client: pg.Client): Promise<RestoreRecord> => {
  const record = await readUnfinishedRestore(client);
  if (record === null)
    throw rejected('BACKUP.NOTHING_UNFINISHED', 'no restore of this database is unfinished');
  return record;
};

/**
 * Finishes an interrupted restore from the folder with which it began. Rejects with
 * `BACKUP.NOTHING_UNFINISHED`, and like `restoreDatabase`. A failure leaves the restore unfinished.
 */
export const resumeRestore = <Facts, Outcome>(
  options: RestoreOptions<Outcome>,
): Promise<Restored<Facts, Outcome>> =>
  withRestoreLock(options.url, async (client) => {
    const record = await takeUnfinished(client);
    const { folder, manifestSha256 } = record;
    if (hashManifest(await readManifestText(folder)) !== manifestSha256)
      throw invalid(
        'BACKUP.DAMAGED',
        `${folder} holds another backup than the one that the restore began with`,
      );
    const manifest = await readChecked<Facts>(folder, options);
    let outcome = record.outcome as Outcome;
    if (record.phase === 'building') {
      // Services were refused since the restore began, so `public` has no other data.
      await inTransaction(client, async () => {
        await client.query('drop schema if exists public cascade');
        await client.query('create schema public');
      });
      outcome = await build(client, record, manifest, options);
    }
    return { manifest, outcome, oldSchema: await complete(client, record, outcome, options) };
  });

/**
 * Brings the data before an interrupted restore back. Returns the record of that restore. Rejects
 * with `BACKUP.NOTHING_UNFINISHED` or `BACKUP.DATABASE_USED`.
 */
export const undoRestore = (url: string): Promise<RestoreRecord> =>
  withRestoreLock(url, async (client) => {
    const record = await takeUnfinished(client);
    await undo(client, record);
    return record;
  });

/**
 * Runs `finish` in a transaction on a database that other tools have restored, while no service
 * uses it. Rejects with `BACKUP.DATABASE_USED` or `DATABASE.RESTORE_UNFINISHED`.
 */
export const adoptDatabase = <Outcome>(
  url: string,
  finish: RestoreOptions<Outcome>['finish'],
): Promise<Outcome> =>
  withRestoreLock(url, async (client) => {
    const unfinished = await readUnfinishedRestore(client);
    if (unfinished !== null) throw unfinishedRestore(unfinished);
    return inTransaction(client, async () => {
      await client.query(ADOPT_SETTINGS);
      return finish(client, 'public');
    });
  });

/** Lists the restores of a database, the newest first. */
export const listRestores = async (url: string): Promise<RestoreRecord[]> => {
  const client = new pg.Client({ connectionString: url, application_name: RESTORE_APPLICATION });
  await client.connect();
  return readRestores(client).finally(() => client.end());
};
