import { join } from 'node:path';
import type pg from 'pg';
import { inTransaction } from '@antiphon/database';
import { notFound } from '@antiphon/kernel';
import { checkArchiveFile, readArchiveFile } from './archive-file.js';
import type { Archived } from './archive-log.js';

interface Row {
  readonly archive_id: string;
  readonly file: string;
  readonly sha256: Buffer;
  readonly cut_position: string;
  readonly streams: string;
  readonly events: string;
}

export interface KnownArchive extends Archived {
  readonly sha256: Buffer;
}

const LIST_SQL = 'select * from log_archives order by cut_position, archived_at, archive_id';
const PAGE = 500;

const toArchive = (row: Row): KnownArchive => ({
  archiveId: row.archive_id,
  file: row.file,
  sha256: row.sha256,
  cutPosition: Number(row.cut_position),
  streams: Number(row.streams),
  events: Number(row.events),
});

/** Archives whose events are not in the log now, oldest cut first. */
export const listArchives = async (db: pg.Pool | pg.ClientBase): Promise<KnownArchive[]> =>
  (await db.query<Row>(LIST_SQL)).rows.map(toArchive);

/**
 * Puts an archive's events back into the log, as they were, in one transaction; the file stays. `pool`: as who owns the
 * database. Rejects with `LOG.ARCHIVE_UNKNOWN`, with `LOG.ARCHIVE_DAMAGED`, or with `DATABASE.ERROR` when the events do
 * not end with the hashes of their checkpoints; then nothing was put back.
 */
export const restoreArchive = async (
  pool: pg.Pool,
  folder: string,
  archiveId: string,
): Promise<KnownArchive> => {
  const archive = (await listArchives(pool)).find((one) => one.archiveId === archiveId);
  if (!archive) throw notFound('LOG.ARCHIVE_UNKNOWN', `no archive ${archiveId} has left this log`);
  const file = join(folder, archive.file);
  await checkArchiveFile(file, archive.sha256);
  await inTransaction(pool, async (client) => {
    await client.query(`set local statement_timeout = '15min'`);
    for await (const lines of readArchiveFile(file, archiveId, PAGE))
      await client.query('select antiphon_restore_events($1, $2)', [archiveId, lines]);
    await client.query('select antiphon_restore_archive($1)', [archiveId]);
  });
  return archive;
};
