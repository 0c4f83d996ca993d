import type pg from 'pg';
import { translateDatabaseError } from '@antiphon/database';
import type { JsonObject } from '@antiphon/kernel';
import type {
  EventMetadata,
  EventStore,
  ReadLogOptions,
  ReadStreamOptions,
  RecordedEvent,
} from './event-store.port.js';

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

/** A null limit means none. */
const streamSql = (backwards: boolean): string =>
  `select ${COLUMNS} from events where workspace = $1 and stream_id = $2 and stream_version >= $3
   order by stream_version ${backwards ? 'desc' : 'asc'} limit $4`;

const LOG_SQL = `select ${COLUMNS} from events where position > $1 order by position limit $2`;
const LOG_OF_CATEGORIES_SQL = `select ${COLUMNS} from events where position > $1 and category = any ($3)
  order by position limit $2`;

const HEAD_SQL = `select greatest(h.base_position, coalesce((select max(position) from events), 0)) as position
  from log_head h where h.id = 1`;

export type LogReader = Pick<EventStore, 'readStream' | 'readLog' | 'streamVersion' | 'headPosition'> & {
  logEpoch(): Promise<number>;
};

/** The reading half of the log, on a pool or inside a transaction. */
export const createLogReader = (db: Queryable): LogReader => ({
  readStream: async (workspace, streamId, options: ReadStreamOptions = {}) => {
    const { fromVersion = 1, limit = null, backwards = false } = options;
    const name = backwards ? 'antiphon_read_stream_back' : 'antiphon_read_stream';
    const values = [workspace, streamId, fromVersion, limit];
    return (await query<EventRow>(db, name, streamSql(backwards), values)).map(toEvent);
  },
  readLog: async ({ after, limit, categories }: ReadLogOptions) => {
    const rows = categories
      ? await query<EventRow>(db, 'antiphon_read_categories', LOG_OF_CATEGORIES_SQL, [
          after,
          limit,
          categories,
        ])
      : await query<EventRow>(db, 'antiphon_read_log', LOG_SQL, [after, limit]);
    return rows.map(toEvent);
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
  logEpoch: async () => {
    const text = 'select epoch from log_head where id = 1';
    const [row] = await query<{ epoch: string }>(db, 'antiphon_log_epoch', text, []);
    return Number(row?.epoch ?? 0);
  },
});
