import type pg from 'pg';
import { translateDatabaseError } from '@antiphon/database';

/** A stream that a projection has stopped at. */
export interface ParkedStream {
  readonly projection: string;
  readonly workspace: string;
  readonly streamId: string;
  /** Of the event that could not be handled; with its id and type, null once it is archived. */
  readonly position: number;
  readonly eventId: string | null;
  readonly type: string | null;
  readonly reason: string;
  readonly tries: number;
  readonly parkedAt: string;
  /** When it is tried again by itself; null: it waits for a replay. */
  readonly retryAt: string | null;
}

interface Row {
  readonly projection: string;
  readonly workspace: string;
  readonly stream_id: string;
  readonly position: string;
  readonly event_id: string | null;
  readonly type: string | null;
  readonly reason: string;
  readonly tries: number;
  readonly parked_at: Date;
  readonly retry_at: Date | null;
}

const LIST_SQL = `select p.*, e.event_id, e.type from projection_parked p
  left join events e on e.position = p.position and e.stream_id = p.stream_id
  where ($1::text is null or p.projection = $1) and ($2::text is null or p.stream_id = $2)
  order by p.projection, p.position`;

/** Every stream that a projection has stopped at, by projection and position; of one projection, or one stream. */
export const listParked = async (
  pool: pg.Pool,
  { projection, streamId }: { readonly projection?: string; readonly streamId?: string } = {},
): Promise<readonly ParkedStream[]> => {
  const { rows } = await pool
    .query<Row>(LIST_SQL, [projection ?? null, streamId ?? null])
    .catch((error: unknown) => {
      throw translateDatabaseError(error);
    });
  return rows.map(({ stream_id, position, event_id, parked_at, retry_at, ...row }) => ({
    ...{ projection: row.projection, workspace: row.workspace, streamId: stream_id },
    ...{ position: Number(position), eventId: event_id, type: row.type },
    ...{ reason: row.reason, tries: row.tries },
    ...{ parkedAt: parked_at.toISOString(), retryAt: retry_at?.toISOString() ?? null },
  }));
};
