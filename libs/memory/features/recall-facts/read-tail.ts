import type pg from 'pg';
import { sessionStream } from '@antiphon/contracts/agent';
import { translateDatabaseError } from '@antiphon/database';
import type { JsonObject } from '@antiphon/kernel';
import { REMEMBERED_TYPES } from '../projections/session-memory.events.js';
import type { SessionRecord } from '../projections/session-memory.events.js';
import { TAIL_SQL } from './recall-sql.js';

interface TailRow {
  readonly event_id: string;
  readonly type: string;
  readonly schema_version: number;
  readonly data: JsonObject;
}

/** What a session's event stream has behind a position of the log. */
export const readTail = async (
  pool: pg.Pool,
  workspace: string,
  sessionId: string,
  position: number,
): Promise<readonly SessionRecord[]> => {
  const values = [workspace, sessionStream(sessionId), position, REMEMBERED_TYPES];
  const query = { name: 'memory_tail_position', text: TAIL_SQL, values };
  const { rows } = await pool.query<TailRow>(query).catch((error: unknown) => {
    throw translateDatabaseError(error);
  });
  return rows.map(({ event_id: eventId, type, schema_version: schemaVersion, data }) => ({
    eventId,
    type,
    schemaVersion,
    data,
  }));
};
