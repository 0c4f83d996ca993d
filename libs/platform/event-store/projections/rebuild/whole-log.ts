import { join } from 'node:path';
import type pg from 'pg';
import { checkArchiveFile, readArchiveFile } from '../../archive/archive-file.js';
import { listArchives } from '../../archive/restore-archive.js';
import { archivedBefore } from '../../read/log-reader.js';

/** The archives whose events a connection sees beside those of the log. */
export type ReadAlong = ReadonlySet<string>;

const PAGE = 1_000;

/** Temporary names come before all others: `events` is now all that ever was, and nothing has left. */
const BEGIN_SQL = `create temp table events_back (like public.events);
  create temp view events as select * from public.events union all select * from pg_temp.events_back;
  create temp table archived_streams (like public.archived_streams)`;
const INSERT_SQL = `insert into pg_temp.events_back
  select e.* from unnest($1::text[]) l cross join lateral jsonb_populate_record(null::public.events, l::jsonb) e`;
const END_SQL = `create index on pg_temp.events_back (position);
  create index on pg_temp.events_back (workspace, stream_id, stream_version); analyze pg_temp.events_back`;

/**
 * Reads the archives in a folder along: from here on this connection sees the log as if nothing had left it. Each file is
 * held against its SHA-256 first. Throws `LOG.ARCHIVE_DAMAGED`. Without a folder nothing is read.
 */
export const readArchivesAlong = async (
  client: pg.ClientBase,
  folder: string | undefined,
): Promise<ReadAlong> => {
  const archives = folder === undefined ? [] : await listArchives(client);
  if (folder === undefined || archives.length === 0) return new Set();
  await client.query(BEGIN_SQL);
  for (const archive of archives) {
    const file = join(folder, archive.file);
    await checkArchiveFile(file, archive.sha256);
    for await (const lines of readArchiveFile(file, archive.archiveId, PAGE))
      await client.query(INSERT_SQL, [lines]);
  }
  await client.query(END_SQL);
  return new Set(archives.map(({ archiveId }) => archiveId));
};

/**
 * Throws `LOG.ARCHIVED` when events have left, or come back, that this connection has not folded exactly once: also while it
 * was folding. To be asked after the last event, in the transaction that read it.
 */
export const requireWholeLog = async (client: pg.ClientBase, along: ReadAlong): Promise<void> => {
  const archives = await listArchives(client);
  if (archives.length === along.size && archives.every(({ archiveId }) => along.has(archiveId))) return;
  throw archivedBefore(Math.max(0, ...archives.map(({ cutPosition }) => cutPosition)));
};
