import { withMessage } from '@antiphon/contracts/causes';
import {
  sessionStream,
  withoutDeletedTexts,
  type HistoryEvent,
  type SessionHistory,
  type SessionTurn,
} from '@antiphon/contracts/agent';
import { upcast } from '@antiphon/contracts/events';
import { inWorkspace, translateDatabaseError, type WorkspaceQueries } from '@antiphon/database';
import { createLogReader, requirePosition } from '@antiphon/event-store';
import { isAppError, notFound, type JsonObject } from '@antiphon/kernel';
import type { Pool } from 'pg';
import { readTurns } from './read-turns.js';

/** Maximum size of the data of a page of events as JSON, bytes. It has at least one event. */
const PAGE_BYTES = 4 * 1024 * 1024;

const STREAM = 'workspace = $1 and stream_id = $2';
const EXISTS_SQL = `select 1 from events where ${STREAM} and position <= $3 limit 1`;
const EVENTS_SQL = `select position, stream_version, type, schema_version, data, recorded_at, bytes_so_far from (
    select *, sum(octet_length(data::text)) over (order by stream_version rows unbounded preceding) as bytes_so_far
    from (select position, stream_version, type, schema_version, data, recorded_at from events
      where ${STREAM} and position > $3 and position <= $4 order by stream_version limit $5) limited) summed
  where bytes_so_far - octet_length(data::text) < $6 order by stream_version`;
const DELETED_SQL = `select distinct data ->> 'turnId' as turn_id, data ->> 'part' as part from events
  where ${STREAM} and type = 'ChatMessageDeleted' and data ->> 'turnId' = any ($3)`;

interface EventRow {
  readonly position: string;
  readonly stream_version: string;
  readonly type: string;
  readonly schema_version: number;
  readonly data: JsonObject;
  readonly recorded_at: Date;
}

interface DeletedRow {
  readonly turn_id: string;
  readonly part: 'message' | 'answer';
}

export interface HistoryRequest {
  readonly workspace: string;
  readonly sessionId: string;
  /** Position of the snapshot. Default: 0, before the session began. */
  readonly from?: number | undefined;
  /** Last position. Default: the head of the log. */
  readonly to?: number | undefined;
  /** Maximum number of events. */
  readonly limit: number;
  /** Maximum number of turns in the snapshot. */
  readonly turns: number;
}

const toEvent = (row: EventRow, deleted: SessionHistory['deleted']): HistoryEvent => {
  const { type, schema_version: schemaVersion } = row;
  // Events were validated when they were appended.
  const event = upcast({ type, schemaVersion, data: row.data as never });
  return {
    version: Number(row.stream_version),
    position: Number(row.position),
    recordedAt: row.recorded_at.toISOString(),
    event: {
      ...{ type: event.type, schemaVersion: event.schemaVersion },
      data: withoutDeletedTexts(
        event.type,
        withMessage(event.data as HistoryEvent['event']['data']),
        deleted,
      ),
    },
  };
};

/** Reads the latest turns as of a position. None before the session began. */
const readSnapshot = async (
  pool: Pool,
  { workspace, sessionId, turns: limit }: HistoryRequest,
  at: number,
): Promise<SessionTurn[]> => {
  if (at === 0) return [];
  try {
    return (await readTurns(pool, { workspace, sessionId, order: 'desc', limit, at })).turns.toReversed();
  } catch (error) {
    if (isAppError(error) && error.code === 'SESSION.NOT_FOUND') return [];
    throw error;
  }
};

const readDeleted = async (
  db: WorkspaceQueries,
  stream: readonly [string, string],
  turnIds: readonly string[],
): Promise<SessionHistory['deleted']> => {
  const { rows } = await db.query<DeletedRow>(DELETED_SQL, [...stream, turnIds]);
  return rows.map(({ turn_id: turnId, part }) => ({ turnId, part }));
};

const read = async (pool: Pool, request: HistoryRequest): Promise<SessionHistory> => {
  const { workspace, sessionId, limit } = request;
  const head = await createLogReader(pool).headPosition();
  const to = requirePosition(request.to ?? head, head);
  const from = Math.min(requirePosition(request.from ?? 0, head), to);
  const db = inWorkspace(pool, workspace);
  const stream = [workspace, sessionStream(sessionId)] as const;
  // One after another: a heavy request holds one connection at most.
  const known = await db.query(EXISTS_SQL, [...stream, to]);
  const turns = await readSnapshot(pool, request, from);
  const found = await db.query<EventRow>(EVENTS_SQL, [...stream, from, to, limit + 1, PAGE_BYTES]);
  if (known.rows.length === 0) throw notFound('SESSION.NOT_FOUND', `there is no session ${sessionId}`);
  const rows = found.rows.slice(0, limit);
  const ids = [...turns.map(({ turnId }) => turnId), ...rows.map(({ data }) => String(data['turnId']))];
  const deleted = await readDeleted(db, stream, [...new Set(ids)]);
  const last = Number(rows.at(-1)?.position ?? to);
  const { rows: more } = await db.query(
    `select 1 from events where ${STREAM} and position > $3 and position <= $4 limit 1`,
    [...[...stream, last, to]],
  );
  const isLast = more.length === 0;
  return {
    ...{ from, position: isLast ? to : last, head, isLast, snapshot: { turns }, deleted },
    events: rows.map((row) => toEvent(row, deleted)),
  };
};

/**
 * Returns the turns of a session as of a position, and its events after it, so that a client folds
 * any position between. Throws `SESSION.NOT_FOUND` and `LOG.POSITION_AHEAD`.
 */
export const readHistory = async (pool: Pool, request: HistoryRequest): Promise<SessionHistory> => {
  try {
    return await read(pool, request);
  } catch (error) {
    throw translateDatabaseError(error);
  }
};
