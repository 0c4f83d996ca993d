import type pg from 'pg';
import { acrossWorkspaces, inWorkspace, translateDatabaseError } from '@antiphon/database';
import type { WorkspaceQueries } from '@antiphon/database';
import { notFound } from '@antiphon/kernel';
import {
  type EventPage,
  type EventStore,
  type LogPageOptions,
  PAGE_BYTES,
  type ReadLogOptions,
  type ReadStreamOptions,
  type StreamPageOptions,
} from '../event-store.port.js';
import {
  archivedBefore,
  EVENT_COLUMNS,
  type EventRow,
  isPageFull,
  type PagedRow,
  pageSql,
  toEvent,
} from './event-row.js';

type Queryable = pg.Pool | pg.ClientBase;

const query = async <Row extends pg.QueryResultRow>(
  db: WorkspaceQueries,
  name: string,
  text: string,
  values: unknown[],
): Promise<Row[]> => {
  try {
    return (await db.query<Row>({ name, text, values })).rows;
  } catch (error) {
    throw translateDatabaseError(error);
  }
};

/**
 * A row without a position: the stream's newest archive checkpoint in the requested range. Events
 * up to `stream_version` are archived; `event_id` is the archive's id.
 */
const ARCHIVED_COLUMNS = `null::bigint, workspace, null, stream_id, to_version, archive_id, null, null::integer, null::jsonb,
  null::jsonb, null::timestamptz, hash`;

/** A null limit means none. The archive checkpoint, which most streams lack, comes last. */
const streamSql = (isBackwards: boolean): string =>
  `(select ${EVENT_COLUMNS} from events where workspace = $1 and stream_id = $2 and stream_version >= $3
   order by stream_version ${isBackwards ? 'desc' : 'asc'} limit $4)
   union all (select ${ARCHIVED_COLUMNS} from archived_streams where workspace = $1 and stream_id = $2 and to_version >= $3
   order by to_version desc limit 1)`;

const streamPageSql = (order: string): string =>
  `(${pageSql(
    `where workspace = $1 and stream_id = $2 and stream_version >= $3 and stream_version < $4
      order by stream_version ${order} limit $5`,
    `stream_version ${order}`,
    '$6',
  )} order by stream_version ${order})
   union all (select ${ARCHIVED_COLUMNS}, null from archived_streams where workspace = $1 and stream_id = $2
     and to_version >= $3 and to_version < $4 order by to_version desc limit 1)`;
const STREAM_PAGE_SQL = streamPageSql('asc');
const STREAM_PAGE_BACK_SQL = streamPageSql('desc');

const refuseArchived = ({
  stream_id: streamId,
  stream_version: version,
  event_id: archiveId,
}: EventRow): never => {
  throw notFound(
    'LOG.ARCHIVED',
    `the events of ${streamId} up to version ${version} were archived; \`antiphon events restore ${archiveId}\` brings them back`,
    { data: { streamId, version: Number(version), archiveId } },
  );
};

/** Returns the last row if it has no position, which means that events are archived. */
const findArchivedRow = (rows: readonly EventRow[]): EventRow | undefined => {
  const last = rows.at(-1);
  return last !== undefined && (last.position as string | null) === null ? last : undefined;
};

/** Removes the archive checkpoint. Throws `LOG.ARCHIVED` unless the rows are the whole answer. */
const requireComplete = (rows: EventRow[], { backwards, limit }: ReadStreamOptions): EventRow[] => {
  const archived = findArchivedRow(rows);
  if (archived === undefined) return rows;
  const events = rows.slice(0, -1);
  return backwards && limit !== undefined && events.length === limit ? events : refuseArchived(archived);
};

/** The last row has no position when events after $1 are archived. */
const logSql = (condition: string): string =>
  `(select ${EVENT_COLUMNS} from events where position > $1 ${condition} order by position limit $2)
   union all (select null::bigint, null, null, null, base_position, null::uuid, null, null::integer, null::jsonb, null::jsonb,
     null::timestamptz, null::bytea from log_head where id = 1 and base_position > $1)`;
const LOG_SQL = logSql('');
const LOG_OF_CATEGORIES_SQL = logSql('and category = any ($3)');

const logPageSql = (condition: string): string =>
  `(${pageSql(`where position > $1 ${condition} order by position limit $2`, 'position', '$3')} order by position)
   union all (select null::bigint, null, null, null, base_position, null::uuid, null, null::integer, null::jsonb, null::jsonb,
     null::timestamptz, null::bytea, null from log_head where id = 1 and base_position > $1)`;
const LOG_PAGE_SQL = logPageSql('');
const LOG_PAGE_OF_CATEGORIES_SQL = logPageSql('and category = any ($4)');

const requireNotArchived = <Row extends EventRow>(rows: Row[]): Row[] => {
  const archived = findArchivedRow(rows);
  if (archived === undefined) return rows;
  throw archivedBefore(Number(archived.stream_version));
};

const VERSION_SQL = 'select version as value from stream_heads where workspace = $1 and stream_id = $2';
const HEAD_SQL = 'select antiphon_head_position() as value';
const BASE_SQL = 'select base_position as value from log_head where id = 1';
const EPOCH_SQL = 'select epoch as value from log_head where id = 1';

export type LogReader = Pick<
  EventStore,
  | 'readStream'
  | 'readStreamPage'
  | 'readLog'
  | 'readLogPage'
  | 'streamVersion'
  | 'headPosition'
  | 'basePosition'
> & {
  logEpoch(): Promise<number>;
};

const MAX_VERSION = Number.MAX_SAFE_INTEGER;

/** Reads a page of a stream. An archived part is refused unless the page ended before it. */
const readStreamPage = async (
  db: WorkspaceQueries,
  workspace: string,
  streamId: string,
  options: StreamPageOptions,
): Promise<EventPage> => {
  const { fromVersion = 1, beforeVersion = MAX_VERSION, limit, maxBytes = PAGE_BYTES, backwards } = options;
  const [name, text] = backwards
    ? ['antiphon_stream_page_back', STREAM_PAGE_BACK_SQL]
    : ['antiphon_stream_page', STREAM_PAGE_SQL];
  const values = [workspace, streamId, fromVersion, beforeVersion, limit, maxBytes];
  const rows = await query<PagedRow>(db, name, text, values);
  const archived = findArchivedRow(rows);
  const events = archived === undefined ? rows : rows.slice(0, -1);
  const hasMore = isPageFull(events, options);
  if (archived !== undefined && !(backwards && hasMore)) refuseArchived(archived);
  return { events: events.map(toEvent), hasMore };
};

const readLogPage = async (db: WorkspaceQueries, options: LogPageOptions): Promise<EventPage> => {
  const { after, limit, maxBytes = PAGE_BYTES, categories } = options;
  const [name, text] = categories
    ? ['antiphon_category_page', LOG_PAGE_OF_CATEGORIES_SQL]
    : ['antiphon_log_page', LOG_PAGE_SQL];
  const values = [after, limit, maxBytes, ...(categories ? [categories] : [])];
  const rows = requireNotArchived(await query<PagedRow>(db, name, text, values));
  return { events: rows.map(toEvent), hasMore: isPageFull(rows, options) };
};

/**
 * Creates the read half of the log, on a pool or inside a transaction. Reads of a stream see its
 * workspace alone; reads by position belong to system readers and see all of them.
 */
export const createLogReader = (pool: Queryable): LogReader => {
  const everywhere = acrossWorkspaces(pool);
  const readNumber = async (name: string, text: string, values: unknown[] = []): Promise<number> => {
    const [row] = await query<{ value: string }>(everywhere, name, text, values);
    return Number(row?.value ?? 0);
  };
  return {
    readStream: async (workspace, streamId, options: ReadStreamOptions = {}) => {
      const { fromVersion = 1, limit = null, backwards = false } = options;
      const name = backwards ? 'antiphon_read_stream_back' : 'antiphon_read_stream';
      const values = [workspace, streamId, fromVersion, limit];
      const rows = await query<EventRow>(inWorkspace(pool, workspace), name, streamSql(backwards), values);
      return requireComplete(rows, options).map(toEvent);
    },
    readStreamPage: (workspace, streamId, options) =>
      readStreamPage(inWorkspace(pool, workspace), workspace, streamId, options),
    readLogPage: (options) => readLogPage(everywhere, options),
    readLog: async ({ after, limit, categories }: ReadLogOptions) => {
      const rows = categories
        ? await query<EventRow>(everywhere, 'antiphon_read_categories', LOG_OF_CATEGORIES_SQL, [
            after,
            limit,
            categories,
          ])
        : await query<EventRow>(everywhere, 'antiphon_read_log', LOG_SQL, [after, limit]);
      return requireNotArchived(rows).map(toEvent);
    },
    streamVersion: async (workspace, streamId) => {
      const values = [workspace, streamId];
      const db = inWorkspace(pool, workspace);
      const [row] = await query<{ value: string }>(db, 'antiphon_stream_version', VERSION_SQL, values);
      return Number(row?.value ?? 0);
    },
    headPosition: () => readNumber('antiphon_head_position', HEAD_SQL),
    basePosition: () => readNumber('antiphon_base_position', BASE_SQL),
    logEpoch: () => readNumber('antiphon_log_epoch', EPOCH_SQL),
  };
};
