import type { EventsQuery } from '@antiphon/contracts/gateway';
import { encodeCursor, epochOfCursor } from '@antiphon/contracts/log';
import type { EventView } from '@antiphon/contracts/reference';
import { translateDatabaseError } from '@antiphon/database';
import { severityOf } from '@antiphon/gateway-domain';
import { requirePosition } from '@antiphon/event-store';
import { conflict } from '@antiphon/kernel';
import type { Pool } from 'pg';
import type { z } from 'zod';
import { readEventRows, type EventPageRow } from './event-page.js';

/** An event as clients get it. */
export type LoggedEvent = z.output<typeof EventView>;

export interface EventPage {
  readonly events: LoggedEvent[];
  /** Cursor of the next page; null on the last page. */
  readonly nextCursor: string | null;
  /** Position up to which the page is complete, and the head of the log. */
  readonly position: number;
  readonly head: number;
}

/** Returns a row as clients get it. */
export const toView = (row: EventPageRow): LoggedEvent => ({
  position: Number(row.position),
  category: row.category,
  streamId: row.stream_id,
  streamVersion: Number(row.stream_version),
  eventId: row.event_id,
  type: row.type,
  schemaVersion: row.schema_version,
  severity: severityOf(row.type),
  data: row.data as LoggedEvent['data'],
  metadata: row.metadata as LoggedEvent['metadata'],
  recordedAt: row.recorded_at.toISOString(),
  hash: row.hash.toString('hex'),
});

/**
 * Throws if the log was restored since the cursor was issued: the same position is then another
 * event.
 */
export const checkEpoch = (cursor: string | undefined, epoch: number): void => {
  const given = cursor === undefined ? undefined : epochOfCursor(cursor);
  if (given === undefined || given === epoch) return;
  const message = `the log was restored since this cursor was issued (epoch ${given}, now ${epoch}): begin without one`;
  throw conflict('GATEWAY.EPOCH_CHANGED', message, { data: { given, epoch } });
};

const HEAD_SQL = 'select epoch, antiphon_head_position() as head from log_head where id = 1';

const failTranslated = (error: unknown): never => {
  throw translateDatabaseError(error);
};

/**
 * Returns a page of a workspace's log. Throws `GATEWAY.INVALID_CURSOR`, `GATEWAY.EPOCH_CHANGED`,
 * `LOG.POSITION_AHEAD`.
 */
export const readEventPage = async (
  pool: Pool,
  workspace: string,
  query: EventsQuery,
): Promise<EventPage> => {
  const heads = await pool.query<{ epoch: string; head: string }>(HEAD_SQL).catch(failTranslated);
  const epoch = Number(heads.rows[0]?.epoch ?? 1);
  const head = Number(heads.rows[0]?.head ?? 0);
  const position = requirePosition(query.at, head);
  checkEpoch(query.cursor, epoch);
  const { rows, next } = await readEventRows(pool, workspace, query).catch(failTranslated);
  const nextCursor = next === null ? null : encodeCursor(next, epoch);
  return { events: rows.map(toView), nextCursor, position, head };
};
