import { join } from 'node:path';
import pg from 'pg';
import { translateDatabaseError } from '@antiphon/database';
import { checkArchiveFile, readArchiveFile } from '../../archive/archive-file.js';
import { listArchives } from '../../archive/archive-log.js';
import { archivedBefore } from '../../read/event-row.js';
import type { ProjectionDefinition } from '../projection-definition.js';

/** Role that may read the log and every projection, and write only its own temporary tables. */
const FOLDING_ROLE = 'antiphon_reader';
const STATEMENT_TIMEOUT = '10min';

/** Returns the quoted name of a table that readers see. */
export const liveTable = (name: string): string => `public.${pg.escapeIdentifier(name)}`;
/** Returns the quoted name of the temporary table that stands in for it. */
export const shadowTable = (name: string): string => `pg_temp.${pg.escapeIdentifier(name)}`;

const PARKED = 'projection_parked';

// Temporary tables have no planner statistics, so sequential scans are switched off. A page of the
// log is read in order of position: a bitmap would visit the whole rest of the log for each page.
const SETTINGS = `set role ${FOLDING_ROLE}; set antiphon.workspace = '*'; set statement_timeout = '${STATEMENT_TIMEOUT}'; set jit = off;
  set idle_in_transaction_session_timeout = '1min'; set synchronous_commit = off; set temp_buffers = '64MB';
  set enable_seqscan = off; set enable_bitmapscan = off`;

/**
 * Returns SQL that creates the shadow tables. Temporary tables come first in the search path, so
 * the statements of a handler find the shadows under the names of the live tables.
 */
export const createShadowsSql = ({ tables }: Pick<ProjectionDefinition, 'tables'>): string =>
  [...tables.map(({ name }) => name), PARKED]
    .map((name) => `create temp table ${pg.escapeIdentifier(name)} (like ${liveTable(name)} including all)`)
    .join('; ');

/**
 * Runs `work` on a separate connection on which the projection's tables and its parked streams are
 * empty temporary tables. The connection has the reader's role: a handler that writes to a table
 * outside its definition is refused. Rejects with an AppError for an error of `pg`.
 */
export const withShadowTables = async <T>(
  pool: pg.Pool,
  definition: ProjectionDefinition,
  work: (client: pg.Client) => Promise<T>,
): Promise<T> => {
  const client = new pg.Client({ ...pool.options, password: pool.options.password, pipeline: true });
  // The failing statement rejects as well. Without a listener, the event would end the process.
  client.on('error', () => undefined);
  try {
    await client.connect();
    await client.query(SETTINGS);
    await client.query(createShadowsSql(definition));
    return await work(client);
  } catch (error) {
    throw translateDatabaseError(error);
  } finally {
    await client.end().catch(() => undefined);
  }
};

/** Ids of the archives whose events a connection sees together with those of the log. */
export type LoadedArchives = ReadonlySet<string>;

const PAGE = 1_000;

/**
 * Creates temporary relations that hide `events` and `archived_streams`: `events` now includes the
 * archived events, and no stream is archived.
 */
const BEGIN_SQL = `create temp table events_back (like public.events);
  create temp view events as select * from public.events union all select * from pg_temp.events_back;
  create temp table archived_streams (like public.archived_streams)`;
const INSERT_SQL = `insert into pg_temp.events_back
  select e.* from unnest($1::text[]) l cross join lateral jsonb_populate_record(null::public.events, l::jsonb) e`;
const END_SQL = `create index on pg_temp.events_back (position);
  create index on pg_temp.events_back (workspace, stream_id, stream_version); analyze pg_temp.events_back`;

/**
 * Loads the archives of a folder, so that this connection sees the whole log. Checks the SHA-256 of
 * each file first and throws `LOG.ARCHIVE_DAMAGED`. Loads nothing without a folder.
 */
export const loadArchives = async (
  client: pg.ClientBase,
  folder: string | undefined,
): Promise<LoadedArchives> => {
  const archives = folder === undefined ? [] : await listArchives(client);
  if (folder === undefined || archives.length === 0) return new Set();
  await client.query(BEGIN_SQL);
  for (const archive of archives) {
    const file = join(folder, archive.file);
    await checkArchiveFile(file, archive.sha256);
    for await (const lines of readArchiveFile(file, archive, PAGE)) await client.query(INSERT_SQL, [lines]);
  }
  await client.query(END_SQL);
  return new Set(archives.map(({ archiveId }) => archiveId));
};

/**
 * Throws `LOG.ARCHIVED` when events were archived or restored that this connection has not folded
 * exactly once, for example during the fold. Call it after the last event, in the transaction that
 * read that event.
 */
export const requireWholeLog = async (client: pg.ClientBase, loaded: LoadedArchives): Promise<void> => {
  const archives = await listArchives(client);
  if (archives.length === loaded.size && archives.every(({ archiveId }) => loaded.has(archiveId))) return;
  throw archivedBefore(Math.max(0, ...archives.map(({ cutPosition }) => cutPosition)));
};
