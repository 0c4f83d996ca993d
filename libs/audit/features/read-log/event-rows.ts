import type { EventPlace } from '@antiphon/audit-domain';
import type { EventMetadata, RecordedEvent } from '@antiphon/event-store';
import type { JsonObject } from '@antiphon/kernel';

/** Columns of `events` as `pg` answers them; bigints as text. */
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

export const EVENT_COLUMNS = `position, workspace, category, stream_id, stream_version, event_id, type, schema_version, data,
  metadata, recorded_at, hash`;

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

export const placeOf = ({
  position,
  workspace,
  streamId,
  streamVersion,
  eventId,
}: RecordedEvent): EventPlace => ({
  position,
  workspace,
  streamId,
  streamVersion,
  eventId,
});
