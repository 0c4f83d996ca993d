import { createHash } from 'node:crypto';
import type pg from 'pg';
import { type AppError, rejected, transient } from '@antiphon/kernel';

/**
 * Advisory lock of a restore. Each process that uses the log holds it shared, a restore holds it
 * alone.
 */
export const RESTORE_LOCK = 4_711_003;

/** Steps of a restore: `building` until its rows are committed, `filled` until it is finished. */
export type RestorePhase = 'building' | 'filled' | 'finished' | 'undone';

/** One restore of this database. */
export interface RestoreRecord {
  readonly id: string;
  readonly phase: RestorePhase;
  /** Folder of the backup. */
  readonly folder: string;
  /** Schema that contains the replaced data. */
  readonly oldSchema: string;
  /** SHA-256 of the backup's manifest, hex. */
  readonly manifestSha256: string;
  /** ISO 8601. */
  readonly beganAt: string;
  /** Value that `finish` returned; null before it has run. */
  readonly outcome: unknown;
}

// Outside of `public`, which a restore replaces. Every role may read it: services refuse to start
// while a restore is unfinished.
const CREATE_SQL = `
  create schema if not exists antiphon_restore;
  create table if not exists antiphon_restore.restores (
    id uuid primary key,
    phase text not null check (phase in ('building', 'filled', 'finished', 'undone')),
    folder text not null,
    manifest_sha256 text not null,
    old_schema text not null,
    began_at timestamptz not null default clock_timestamp(),
    ended_at timestamptz,
    outcome jsonb
  );
  create unique index if not exists one_unfinished on antiphon_restore.restores ((true))
    where phase in ('building', 'filled');
  grant usage on schema antiphon_restore to public;
  grant select on antiphon_restore.restores to public`;

const EXISTS_SQL = `select exists (select from pg_class c join pg_namespace n on n.oid = c.relnamespace
  where n.nspname = 'antiphon_restore' and c.relname = 'restores') as "exists"`;

interface RecordRow {
  readonly id: string;
  readonly phase: RestorePhase;
  readonly folder: string;
  readonly manifest_sha256: string;
  readonly old_schema: string;
  readonly began_at: Date;
  readonly outcome: unknown;
}

/** Reads the restores of a database, the newest first. */
export const readRestores = async (client: pg.ClientBase): Promise<RestoreRecord[]> => {
  const found = await client.query<{ exists: boolean }>(EXISTS_SQL);
  if (found.rows[0]?.exists !== true) return [];
  const { rows } = await client.query<RecordRow>(
    'select * from antiphon_restore.restores order by began_at desc',
  );
  return rows.map((row) => ({
    id: row.id,
    phase: row.phase,
    folder: row.folder,
    oldSchema: row.old_schema,
    manifestSha256: row.manifest_sha256,
    beganAt: row.began_at.toISOString(),
    outcome: row.outcome,
  }));
};

export const isUnfinished = ({ phase }: RestoreRecord): boolean => phase === 'building' || phase === 'filled';

/** Reads the restore that neither finished nor was undone; null if there is none. */
export const readUnfinishedRestore = async (client: pg.ClientBase): Promise<RestoreRecord | null> =>
  (await readRestores(client)).find(isUnfinished) ?? null;

/** Inserts the record of a new restore, which is the marker that services refuse to start on. */
export const insertRestore = async (
  client: pg.ClientBase,
  record: Pick<RestoreRecord, 'id' | 'folder' | 'manifestSha256' | 'oldSchema'>,
): Promise<void> => {
  await client.query(CREATE_SQL);
  await client.query(
    `insert into antiphon_restore.restores (id, phase, folder, manifest_sha256, old_schema)
     values ($1, 'building', $2, $3, $4)`,
    [record.id, record.folder, record.manifestSha256, record.oldSchema],
  );
};

/** Moves a restore to its next phase. An outcome of undefined keeps the stored one. */
export const updateRestore = async (
  client: pg.ClientBase,
  id: string,
  phase: RestorePhase,
  outcome?: unknown,
): Promise<void> => {
  const ended = phase === 'finished' || phase === 'undone';
  await client.query(
    `update antiphon_restore.restores set phase = $2, outcome = coalesce($3::jsonb, outcome),
       ended_at = case when $4 then clock_timestamp() end where id = $1`,
    [id, phase, outcome === undefined ? null : JSON.stringify(outcome), ended],
  );
};

/** Makes the error of every process that finds an interrupted restore. */
export const unfinishedRestore = ({ folder, oldSchema, beganAt }: RestoreRecord): AppError =>
  rejected(
    'DATABASE.RESTORE_UNFINISHED',
    `the restore of ${folder}, begun at ${beganAt}, is unfinished, so this database may lack events. ` +
      `The data before it is in the schema ${oldSchema}. What to do: \`antiphon restore --resume\` ` +
      'finishes it, `antiphon restore --undo` brings back the data before it',
  );

/** Makes the error of a process that wants to use the database during a restore. */
export const restoreRuns = (): AppError =>
  transient('DATABASE.RESTORE_RUNS', 'a restore of this database runs; try again when it has finished');

/** Hashes a manifest, to recognize the backup that a resumed restore began with. */
export const hashManifest = (text: string): string => createHash('sha256').update(text).digest('hex');
