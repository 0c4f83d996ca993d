import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import type pg from 'pg';
import { fetchPages, inTransaction, isConnectionLost, ROW_AS_JSON } from '@antiphon/database';
import { invalid, notFound } from '@antiphon/kernel';
import { checkArchiveFile, readArchiveFile, writeArchiveFile } from './archive-file.js';
import { deleteRefusedRequest, insertArchiveRequest } from './archive-requests.js';
import type { ArchiveRequest } from './archive-requests.js';
import { findStreamsAtRest, type LeavingStream, type RestRule } from './streams-at-rest.js';

export interface ArchiveOptions {
  readonly pool: pg.Pool;
  /** Folder of the archive files. */
  readonly folder: string;
  readonly rules: readonly RestRule[];
  /** Selects streams with a last event before this time (ISO 8601) or up to this position. */
  readonly before: { readonly time: string } | { readonly position: number };
  /** Selects only event streams of this workspace. */
  readonly workspace?: string | undefined;
  /** Maximum number of events in one file. */
  readonly maxEvents?: number;
  /**
   * Stops the writing of the file. Nothing is requested, and the call rejects with the signal's
   * reason.
   */
  readonly signal?: AbortSignal;
}

/** A file of archived events. */
export interface Archived {
  readonly archiveId: string;
  readonly file: string;
  readonly cutPosition: number;
  readonly streams: number;
  readonly events: number;
}

const MAX_EVENTS = 200_000;
const PAGE = 500;
/** Limits for a scan of the whole log; those of the pool suit requests. */
const LONG_TIMEOUTS = `set local statement_timeout = '15min'; set local idle_in_transaction_session_timeout = '15min'`;

const BEFORE_SQL = `select coalesce((select min(position) - 1 from events where recorded_at >= $1::timestamptz),
  (select max(position) from events), 0) as cut`;
/**
 * Selects the last position that may be archived. The newest event stays, because positions
 * continue from it. Events that a projection has not seen stay, and so do those of a signed log
 * that no root covers yet.
 */
const LAST_SQL = `select gen_random_uuid() as id, least((select coalesce(max(position), 0) - 1 from events),
  (select min(position) from projection_checkpoints),
  (select position from log_roots order by number desc limit 1)) as last`;

const readCut = async (client: pg.ClientBase, before: ArchiveOptions['before']): Promise<number> => {
  if ('position' in before) return before.position;
  const { rows } = await client.query<{ cut: string }>(BEFORE_SQL, [before.time]);
  return Number(rows[0]?.cut);
};

const toColumns = (streams: readonly LeavingStream[]): unknown[] => [
  streams.map(({ workspace }) => workspace),
  streams.map(({ streamId }) => streamId),
  streams.map(({ fromVersion }) => fromVersion),
  streams.map(({ toVersion }) => toVersion),
];

async function* readLines(
  client: pg.ClientBase,
  streams: readonly LeavingStream[],
  cut: number,
  signal: AbortSignal | undefined,
) {
  const query = {
    name: 'leaving',
    rows: `select e.*
       from unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[]) s (workspace, stream_id, from_version, to_version)
       join events e on e.workspace = s.workspace and e.stream_id = s.stream_id
         and e.stream_version between s.from_version and s.to_version
       where e.position <= $5 order by e.workspace, e.stream_id, e.stream_version`,
    bytes: 'octet_length(to_jsonb(r)::text)',
    columns: `${ROW_AS_JSON} as line`,
    values: [...toColumns(streams), cut],
  };
  for await (const rows of fetchPages<{ line: string }>(client, query)) {
    signal?.throwIfAborted();
    yield rows.map(({ line }) => line);
  }
}

/** A written archive file, and the request for it. */
export interface ProposedArchive extends Archived {
  readonly sha256: Buffer;
}

const writeArchive = (options: ArchiveOptions): Promise<ProposedArchive | null> =>
  inTransaction(options.pool, async (client) => {
    const { rules, before, workspace, maxEvents = MAX_EVENTS, folder, signal } = options;
    await client.query('set transaction isolation level repeatable read, read only');
    await client.query(LONG_TIMEOUTS);
    const { rows } = await client.query<{ last: string; id: string }>(LAST_SQL);
    const [head] = rows;
    const cutPosition = Math.min(await readCut(client, before), Number(head?.last));
    const archiveId = head?.id ?? '';
    const leaving = await findStreamsAtRest(client, { rules, cut: cutPosition, workspace, maxEvents });
    if (leaving.length === 0) return null;
    const file = `events-${String(cutPosition).padStart(12, '0')}-${archiveId}.jsonl.gz`;
    const header = { kind: 'antiphon-archive', format: 1, archiveId, cutPosition } as const;
    const lines = readLines(client, leaving, cutPosition, signal);
    const sha256 = await writeArchiveFile(join(folder, file), header, lines);
    const events = leaving.reduce((sum, stream) => sum + stream.events, 0);
    return { archiveId, file, cutPosition, streams: leaving.length, events, sha256 };
  });

/**
 * Writes the oldest event streams at rest to one file, and requests that the archiver takes them
 * out of the log. Returns null when there is nothing to archive. Appends and reads continue during
 * the call. Rejects with `DATABASE.…` or `LOG.UNAVAILABLE`. After a lost connection the request may
 * exist, so the file stays.
 */
export const proposeArchive = async (options: ArchiveOptions): Promise<ProposedArchive | null> => {
  const written = await writeArchive(options);
  if (written === null) return null;
  try {
    await insertArchiveRequest(options.pool, written);
  } catch (error) {
    // After a lost connection the commit is uncertain: the archiver may read the file.
    if (!isConnectionLost((error as Error).cause))
      await rm(join(options.folder, written.file), { force: true });
    throw error;
  }
  return written;
};

/**
 * Deletes a refused request, and then its file. Returns false for a request that waits: its file
 * may be the only copy of its events at any moment.
 */
export const withdrawArchive = async (
  pool: pg.Pool,
  folder: string,
  { archiveId, file }: Pick<ArchiveRequest, 'archiveId' | 'file'>,
): Promise<boolean> => {
  checkArchiveName(file);
  if (!(await deleteRefusedRequest(pool, archiveId))) return false;
  await rm(join(folder, file), { force: true });
  return true;
};

interface ArchiveRow {
  readonly archive_id: string;
  readonly file: string;
  readonly sha256: Buffer;
  readonly cut_position: string;
  readonly streams: string;
  readonly events: string;
  readonly archived_at: Date;
  readonly rows_deleted_at: Date | null;
}

/** An archive whose events are not in the log. */
export interface KnownArchive extends Archived {
  readonly sha256: Buffer;
  /** Time at which its events left the log, ISO 8601. */
  readonly archivedAt: string;
  /** True once closed approvals and ended reservations of its streams are deleted. */
  readonly hasDeletedRows: boolean;
}

const LIST_SQL = 'select * from log_archives order by cut_position, archived_at, archive_id';

const toArchive = (row: ArchiveRow): KnownArchive => ({
  archiveId: row.archive_id,
  file: row.file,
  sha256: row.sha256,
  cutPosition: Number(row.cut_position),
  streams: Number(row.streams),
  events: Number(row.events),
  archivedAt: row.archived_at.toISOString(),
  hasDeletedRows: row.rows_deleted_at !== null,
});

const ARCHIVE_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,199}$/;

/** Throws `LOG.ARCHIVE_DAMAGED` for a name that is no plain name of a file. */
export const checkArchiveName = (file: string): void => {
  if (typeof file !== 'string' || !ARCHIVE_NAME.test(file))
    throw invalid('LOG.ARCHIVE_DAMAGED', `the archive ${file} is not a file of the folder of archives`);
};

/**
 * Lists the archives whose events are not in the log, by cut position. Rejects with
 * `LOG.ARCHIVE_DAMAGED` for a row whose file is outside of the folder.
 */
export const listArchives = async (db: pg.Pool | pg.ClientBase): Promise<KnownArchive[]> => {
  const { rows } = await db.query<ArchiveRow>(LIST_SQL);
  for (const { file } of rows) checkArchiveName(file);
  return rows.map(toArchive);
};

/**
 * Restores the events of an archive to the log in one transaction; the file stays. The pool's user
 * must own the database. Restores nothing and rejects with `LOG.ARCHIVE_UNKNOWN`,
 * `LOG.ARCHIVE_DAMAGED`, or `DATABASE.ERROR` when the events do not end with the hashes of their
 * checkpoints.
 */
export const restoreArchive = async (
  pool: pg.Pool,
  folder: string,
  archiveId: string,
): Promise<KnownArchive> => {
  const archive = (await listArchives(pool)).find((known) => known.archiveId === archiveId);
  if (!archive) throw notFound('LOG.ARCHIVE_UNKNOWN', `no archive ${archiveId} has left this log`);
  const file = join(folder, archive.file);
  await checkArchiveFile(file, archive.sha256);
  await inTransaction(pool, async (client) => {
    await client.query(`set local statement_timeout = '15min'`);
    for await (const lines of readArchiveFile(file, archive, PAGE))
      await client.query('select antiphon_restore_events($1, $2)', [archiveId, lines]);
    await client.query('select antiphon_restore_archive($1)', [archiveId]);
  });
  return archive;
};
