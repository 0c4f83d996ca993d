import type pg from 'pg';
import { translateDatabaseError } from '@antiphon/database';
import { notFound, type AppError, type JsonObject } from '@antiphon/kernel';
import type {
  EventMetadata,
  EventStore,
  ReadLogOptions,
  ReadStreamOptions,
  RecordedEvent,
} from '../event-store.port.js';

export interface EventRow {
  readonly position: string;
  readonly workspace: string;
  readonly category: string;
  readonly stream_id: string;
  readonly stream_version: string;
  readonly event_id: string;
  readonly type: string;
  readonly schema_version: number;
  readonly data: JsonObject;
  readonly metadata: EventMetadata;
  readonly recorded_at: Date;
  readonly hash: Buffer;
}

export const COLUMNS = `position, workspace, category, stream_id, stream_version, event_id, type, schema_version, data, metadata,
  recorded_at, hash`;

export const toEvent = (row: EventRow): RecordedEvent => ({
  position: Number(row.position),
  workspace: row.workspace,
  category: row.category,
  streamId: row.stream_id,
  streamVersion: Number(row.stream_version),
  eventId: row.event_id,
  type: row.type,
  schemaVersion: row.schema_version,
  data: row.data,
  metadata: row.metadata,
  recordedAt: row.recorded_at.toISOString(),
  hash: row.hash.toString('hex'),
});

type Queryable = pg.Pool | pg.ClientBase;

const query = async <Row extends pg.QueryResultRow>(
  db: Queryable,
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

/** A row without a position: what was asked for has left to an archive, up to `stream_version`. */
const ARCHIVED_COLUMNS = `null::bigint, workspace, null, stream_id, to_version, archive_id, null, null::integer, null::jsonb,
  null::jsonb, null::timestamptz, hash`;

/** A null limit means none. Last, and mostly none, comes the newest checkpoint of what was archived of that. */
const streamSql = (backwards: boolean): string =>
  `(select ${COLUMNS} from events where workspace = $1 and stream_id = $2 and stream_version >= $3
   order by stream_version ${backwards ? 'desc' : 'asc'} limit $4)
   union all (select ${ARCHIVED_COLUMNS} from archived_streams where workspace = $1 and stream_id = $2 and to_version >= $3
   order by to_version desc limit 1)`;

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

/** Throws `LOG.ARCHIVED` unless the rows are all that was asked for. */
const withoutArchived = (rows: EventRow[], { backwards, limit }: ReadStreamOptions): EventRow[] => {
  const last = rows.at(-1);
  if (last === undefined || (last.position as string | null) !== null) return rows;
  const events = rows.slice(0, -1);
  return backwards && limit !== undefined && events.length === limit ? events : refuseArchived(last);
};

/** Last comes a row without a position when the log has holes behind $1, since events have left. */
const logSql = (condition: string): string =>
  `(select ${COLUMNS} from events where position > $1 ${condition} order by position limit $2)
   union all (select null::bigint, null, null, null, base_position, null::uuid, null, null::integer, null::jsonb, null::jsonb,
     null::timestamptz, null::bytea from log_head where id = 1 and base_position > $1)`;
const LOG_SQL = logSql('');
const LOG_OF_CATEGORIES_SQL = logSql('and category = any ($3)');

/** The error of whoever reads the log by position from before where it has holes. */
export const archivedBefore = (base: number): AppError =>
  notFound(
    'LOG.ARCHIVED',
    `events up to position ${base} were archived; \`antiphon events restore --all\` brings them back`,
    { data: { basePosition: base } },
  );

const withoutHoles = (rows: EventRow[]): EventRow[] => {
  const last = rows.at(-1);
  if (last === undefined || (last.position as string | null) !== null) return rows;
  throw archivedBefore(Number(last.stream_version));
};

const HEAD_SQL = `select greatest(h.base_position, coalesce((select max(position) from events), 0)) as position
  from log_head h where h.id = 1`;

export type LogReader = Pick<
  EventStore,
  'readStream' | 'readLog' | 'streamVersion' | 'headPosition' | 'basePosition'
> & {
  logEpoch(): Promise<number>;
};

/** The reading half of the log, on a pool or inside a transaction. */
export const createLogReader = (db: Queryable): LogReader => ({
  readStream: async (workspace, streamId, options: ReadStreamOptions = {}) => {
    const { fromVersion = 1, limit = null, backwards = false } = options;
    const name = backwards ? 'antiphon_read_stream_back' : 'antiphon_read_stream';
    const values = [workspace, streamId, fromVersion, limit];
    const rows = await query<EventRow>(db, name, streamSql(backwards), values);
    return withoutArchived(rows, options).map(toEvent);
  },
  readLog: async ({ after, limit, categories }: ReadLogOptions) => {
    const rows = categories
      ? await query<EventRow>(db, 'antiphon_read_categories', LOG_OF_CATEGORIES_SQL, [
          after,
          limit,
          categories,
        ])
      : await query<EventRow>(db, 'antiphon_read_log', LOG_SQL, [after, limit]);
    return withoutHoles(rows).map(toEvent);
  },
  streamVersion: async (workspace, streamId) => {
    const text = 'select version from stream_heads where workspace = $1 and stream_id = $2';
    const [row] = await query<{ version: string }>(db, 'antiphon_stream_version', text, [
      workspace,
      streamId,
    ]);
    return Number(row?.version ?? 0);
  },
  headPosition: async () => {
    const [row] = await query<{ position: string }>(db, 'antiphon_head_position', HEAD_SQL, []);
    return Number(row?.position ?? 0);
  },
  basePosition: async () => {
    const text = 'select base_position from log_head where id = 1';
    const [row] = await query<{ base_position: string }>(db, 'antiphon_base_position', text, []);
    return Number(row?.base_position ?? 0);
  },
  logEpoch: async () => {
    const text = 'select epoch from log_head where id = 1';
    const [row] = await query<{ epoch: string }>(db, 'antiphon_log_epoch', text, []);
    return Number(row?.epoch ?? 0);
  },
});
