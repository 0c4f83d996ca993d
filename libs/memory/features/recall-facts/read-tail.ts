import type pg from 'pg';
import { sessionStream } from '@antiphon/contracts/agent';
import { translateDatabaseError } from '@antiphon/database';
import type { JsonObject } from '@antiphon/kernel';
import { REMEMBERED_TYPES } from '../projections/session-memory.events.js';
import type { SessionRecord } from '../projections/session-memory.events.js';
import { TAIL_BEHIND_POSITION_SQL, TAIL_BEHIND_VERSION_SQL } from './recall-sql.js';

/** What a session's event stream has behind the rows. */
export interface StreamTail {
  /** Its version now, 0 when there is no such stream. */
  readonly head: number;
  readonly events: readonly SessionRecord[];
}

type Behind = { readonly version: number } | { readonly position: number };

interface TailRow {
  readonly head: string;
  readonly event_id: string | null;
  readonly type: string;
  readonly schema_version: number;
  readonly data: JsonObject;
}

const statementOf = (behind: Behind): { name: string; text: string; from: number } =>
  'version' in behind
    ? { name: 'memory_tail_version', text: TAIL_BEHIND_VERSION_SQL, from: behind.version }
    : { name: 'memory_tail_position', text: TAIL_BEHIND_POSITION_SQL, from: behind.position };

export const readTail = async (
  pool: pg.Pool,
  workspace: string,
  sessionId: string,
  behind: Behind,
): Promise<StreamTail> => {
  const { name, text, from } = statementOf(behind);
  const values = [workspace, sessionStream(sessionId), from, REMEMBERED_TYPES];
  const { rows } = await pool.query<TailRow>({ name, text, values }).catch((error: unknown) => {
    throw translateDatabaseError(error);
  });
  const events = rows.flatMap(({ event_id: eventId, type, schema_version: schemaVersion, data }) =>
    eventId === null ? [] : [{ eventId, type, schemaVersion, data }],
  );
  return { head: Number(rows[0]?.head ?? 0), events };
};
