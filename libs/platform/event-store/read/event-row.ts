import { type AppError, type JsonObject, notFound } from '@antiphon/kernel';
import { PAGE_BYTES } from '../event-store.port.js';
import type { EventMetadata, PageBounds, RecordedEvent } from '../event-store.port.js';

/** A row of `events` as `pg` returns it. */
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

export const EVENT_COLUMNS = `position, workspace, category, stream_id, stream_version, event_id, type, schema_version,
  data, metadata, recorded_at, hash`;

/**
 * Bytes of an event's data as the client receives it. Only compressed data must be read for it: its
 * stored size says nothing, because a repetitive text is compressed a hundredfold.
 */
export const EVENT_BYTES = `case when pg_column_compression(data) is null then pg_column_size(data)
  else octet_length(data::text) end`;

/** A row of a page, with the bytes of the page up to and with it. */
export interface PagedRow extends EventRow {
  readonly bytes_so_far: string;
}

/**
 * Returns SQL for a page of events: `selection` (a condition, an order and a limit), cut after the
 * row that reaches `maxBytes`. Rows are numbered by `order`. `source` has the columns of `events`.
 */
export const pageSql = (
  selection: string,
  order: string,
  maxBytes = String(PAGE_BYTES),
  source = 'events',
): string =>
  `select ${EVENT_COLUMNS}, bytes_so_far from (
    select *, sum(bytes) over (order by ${order} rows unbounded preceding) as bytes_so_far
    from (select ${EVENT_COLUMNS}, ${EVENT_BYTES} as bytes from ${source} ${selection}) limited) summed
  where bytes_so_far - bytes < ${maxBytes}`;

/** True if a page of these rows ended at one of its bounds. */
export const isPageFull = (
  rows: readonly PagedRow[],
  { limit, maxBytes = PAGE_BYTES }: PageBounds,
): boolean => rows.length === limit || Number(rows.at(-1)?.bytes_so_far ?? 0) >= maxBytes;

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

/** Creates the error of a read by position that begins before the log's base position. */
export const archivedBefore = (base: number): AppError =>
  notFound(
    'LOG.ARCHIVED',
    `events up to position ${base} were archived; \`antiphon events restore --all\` brings them back`,
    { data: { basePosition: base } },
  );
