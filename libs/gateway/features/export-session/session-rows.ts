import { sessionStream } from '@antiphon/contracts/agent';
import { translateDatabaseError } from '@antiphon/database';
import type { EventMetadata, RecordedEvent } from '@antiphon/event-store';
import type { JsonObject } from '@antiphon/kernel';
import type { Pool } from 'pg';

interface Row {
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

/** Events read at once: an event is 1 MiB at most. */
const PAGE = 200;

// The rows as they were written: what a reader makes of old forms would not have their hashes.
const SQL = `select position, workspace, category, stream_id, stream_version, event_id, type, schema_version, data,
    metadata, recorded_at, hash
  from events where workspace = $1 and stream_id = $2 and stream_version > $3 and stream_version <= $4
  order by stream_version limit ${PAGE}`;

const toEvent = (row: Row): RecordedEvent => ({
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

/** The events of a session up to a version, page by page, oldest first; none where there is no such session. */
export async function* readSessionRows(
  pool: Pool,
  workspace: string,
  sessionId: string,
  upTo: number = Number.MAX_SAFE_INTEGER,
): AsyncGenerator<readonly RecordedEvent[]> {
  for (let after = 0; ;) {
    const values = [workspace, sessionStream(sessionId), after, upTo];
    const { rows } = await pool.query<Row>(SQL, values).catch((error: unknown) => {
      throw translateDatabaseError(error);
    });
    if (rows.length > 0) yield rows.map(toEvent);
    if (rows.length < PAGE) return;
    after = Number(rows.at(-1)?.stream_version);
  }
}
