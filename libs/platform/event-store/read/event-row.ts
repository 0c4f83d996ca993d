import { type AppError, type JsonObject, notFound } from '@antiphon/kernel';
import type { EventMetadata, RecordedEvent } from '../event-store.port.js';

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
