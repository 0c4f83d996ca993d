import type { EventsQuery } from '@antiphon/contracts/gateway';
import { encodeCursor } from '@antiphon/contracts/log';
import { translateDatabaseError } from '@antiphon/database';
import { requirePosition } from '@antiphon/event-store';
import type { Pool } from 'pg';
import { readEventRows } from './event-page.js';
import { checkEpoch, type LoggedEvent } from './event-view.js';
import { readableCategories, showRows, type EventReader } from './shown-events.js';

export interface EventPage {
  readonly events: LoggedEvent[];
  /** Cursor of the next page; null on the last page. */
  readonly nextCursor: string | null;
  /** Position up to which the page is complete, and the head of the log. */
  readonly position: number;
  readonly head: number;
  /** Position up to which the log was searched; with `order=desc` down to which. */
  readonly searchedTo: number;
}

const HEAD_SQL = 'select epoch, antiphon_head_position() as head from log_head where id = 1';

const failTranslated = (error: unknown): never => {
  throw translateDatabaseError(error);
};

/**
 * Returns a page of a workspace's log as a reader may see it. Throws `GATEWAY.INVALID_CURSOR`,
 * `GATEWAY.EPOCH_CHANGED`, `LOG.POSITION_AHEAD`.
 */
export const readEventPage = async (
  pool: Pool,
  workspace: string,
  query: EventsQuery,
  reader: EventReader,
): Promise<EventPage> => {
  const heads = await pool.query<{ epoch: string; head: string }>(HEAD_SQL).catch(failTranslated);
  const epoch = Number(heads.rows[0]?.epoch ?? 1);
  const head = Number(heads.rows[0]?.head ?? 0);
  const position = requirePosition(query.at, head);
  checkEpoch(query.cursor, epoch);
  const categories = readableCategories(reader);
  const { rows, next } = await readEventRows(pool, workspace, query, { categories }).catch(failTranslated);
  const nextCursor = next === null ? null : encodeCursor(next, epoch);
  const events = await showRows(pool, workspace, reader, rows).catch(failTranslated);
  const end = query.order === 'desc' ? (query.after ?? 0) : position;
  return { events, nextCursor, position, head, searchedTo: next ?? end };
};
