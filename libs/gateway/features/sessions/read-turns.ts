import {
  deleteTurnPart,
  foldTurns,
  sessionStream,
  TURN_ENDS_SQL,
  type MessagePart,
  type SessionEvent,
  type SessionTurn,
  type TurnEvent,
} from '@antiphon/contracts/agent';
import { upcast } from '@antiphon/contracts/events';
import { encodeCursor } from '@antiphon/contracts/log';
import { inWorkspace, translateDatabaseError, type WorkspaceQueries } from '@antiphon/database';
import { requirePosition, positionOfCursor } from '@antiphon/event-store';
import { notFound } from '@antiphon/kernel';
import type { Pool } from 'pg';

const STREAM = 'workspace = $1 and stream_id = $2';
const HEAD_SQL = 'select antiphon_head_position() as head';
const EXISTS_SQL = `select 1 from events where ${STREAM} and position <= $3 limit 1`;
const turnsSql = (order: 'asc' | 'desc'): string => `select stream_version, data ->> 'turnId' as turn_id
  from events where ${STREAM} and type = 'TurnRequested' and position <= $3
    and ($4::bigint is null or stream_version ${order === 'asc' ? '>' : '<'} $4)
  order by stream_version ${order} limit $5 offset $6`;
const END_SQL = `select stream_version from events where ${STREAM} and stream_version >= $3
    and type in (${TURN_ENDS_SQL}) and data ->> 'turnId' = $4 order by stream_version limit 1`;
/** Bounds of one read of events: rows, and bytes of their data. An event has at most 1 MiB. */
const READ_EVENTS = 500;
const READ_BYTES = 4 * 1024 * 1024;
// Stored sizes of compressed data say little about their text.
const BYTES = `case when pg_column_compression(data) is null then pg_column_size(data)
  else octet_length(data::text) end`;
const EVENTS_SQL = `select position, stream_version, type, schema_version, data, bytes_so_far from (
    select *, sum(bytes) over (order by stream_version rows unbounded preceding) as bytes_so_far
    from (select position, stream_version, type, schema_version, data, ${BYTES} as bytes from events
      where ${STREAM} and position <= $3 and stream_version between $4 and $5 and data ->> 'turnId' = any ($6)
      order by stream_version limit ${READ_EVENTS}) limited) summed
  where bytes_so_far - bytes < $7 order by stream_version`;
const CHANGES_SQL = `select position, stream_version, type, schema_version, data from events
  where ${STREAM} and type in ('ChatMessageEdited', 'ChatMessageDeleted') and stream_version > $3
    and data ->> 'turnId' = any ($4) order by stream_version`;

interface EventRow {
  readonly position: string;
  readonly stream_version: string;
  readonly type: string;
  readonly schema_version: number;
  readonly data: Record<string, unknown>;
}

interface PagedRow extends EventRow {
  readonly bytes_so_far: string;
}

interface TurnRow {
  readonly stream_version: string;
  readonly turn_id: string;
}

export interface TurnsPage {
  readonly turns: SessionTurn[];
  readonly nextCursor: string | null;
  readonly position?: number;
  readonly head?: number;
}

export interface TurnsRequest {
  readonly workspace: string;
  readonly sessionId: string;
  readonly order?: 'asc' | 'desc' | undefined;
  readonly limit: number;
  readonly offset?: number | undefined;
  readonly cursor?: string | undefined;
  readonly at?: number | undefined;
  /** Bytes of events that one query reads. Default: 4 MiB. */
  readonly readBytes?: number;
}

// Events were validated when they were appended.
const toTurnEvent = (row: EventRow): TurnEvent => ({
  event: upcast({
    type: row.type,
    schemaVersion: row.schema_version,
    data: row.data as never,
  }) as SessionEvent,
  version: Number(row.stream_version),
  position: Number(row.position),
});

/** Reads pages of the turns of one session from its event stream, now or up to a position. */
class TurnsReader {
  readonly #db: WorkspaceQueries;
  readonly #stream: readonly [workspace: string, stream: string];

  constructor(
    pool: Pool,
    private readonly request: TurnsRequest,
    private readonly upTo: number,
  ) {
    this.#db = inWorkspace(pool, request.workspace);
    this.#stream = [request.workspace, sessionStream(request.sessionId)];
  }

  async read(): Promise<TurnsPage> {
    const { order = 'desc', limit, offset = 0, cursor, sessionId } = this.request;
    const values = [
      ...this.#stream,
      this.upTo,
      positionOfCursor(cursor, 'GATEWAY.INVALID_CURSOR'),
      limit + 1,
      offset,
    ];
    const { rows } = await this.#db.query<TurnRow>(turnsSql(order), values);
    const shown = rows.slice(0, limit);
    const last = shown.at(-1);
    if (!last && !(await this.#exists()))
      throw notFound('SESSION.NOT_FOUND', `there is no session ${sessionId}`);
    const turns = await this.#readTurns(order === 'desc' ? shown.toReversed() : shown);
    const nextCursor = rows.length > limit && last ? encodeCursor(Number(last.stream_version)) : null;
    return { turns: order === 'desc' ? turns.toReversed() : turns, nextCursor };
  }

  /** Reads turns, which are given in the order of the log. */
  async #readTurns(rows: readonly TurnRow[]): Promise<SessionTurn[]> {
    const [first, last] = [rows[0], rows.at(-1)];
    if (!first || !last) return [];
    const ids = rows.map(({ turn_id: id }) => id);
    const end = await this.#endOf(last);
    const turns = new Map<string, SessionTurn>();
    for (let from: number | null = Number(first.stream_version); from !== null;)
      from = await this.#foldEvents(turns, ids, from, end);
    await this.#applyChanges(turns, end);
    return [...turns.values()];
  }

  /** Folds a bounded read of events. Returns the version after it; null at the end. */
  async #foldEvents(
    turns: Map<string, SessionTurn>,
    ids: readonly string[],
    from: number,
    end: string,
  ): Promise<number | null> {
    const { readBytes = READ_BYTES } = this.request;
    const values = [...this.#stream, this.upTo, from, end, ids, readBytes];
    const { rows } = await this.#db.query<PagedRow>(EVENTS_SQL, values);
    foldTurns(rows.map(toTurnEvent), turns);
    const last = rows.at(-1);
    const isCut = rows.length === READ_EVENTS || Number(last?.bytes_so_far ?? 0) >= readBytes;
    return last && isCut ? Number(last.stream_version) + 1 : null;
  }

  /** Returns the version of a turn's end, after which none of its parts follow. */
  async #endOf({ stream_version: version, turn_id: id }: TurnRow): Promise<string> {
    const { rows } = await this.#db.query<TurnRow>(END_SQL, [...this.#stream, version, id]);
    return rows[0]?.stream_version ?? String(Number.MAX_SAFE_INTEGER);
  }

  /**
   * Applies changes of messages after the end of the page. Deleted messages stay deleted in every
   * view of the past.
   */
  async #applyChanges(turns: Map<string, SessionTurn>, end: string): Promise<void> {
    const values = [...this.#stream, end, [...turns.keys()]];
    const { rows } = await this.#db.query<EventRow>(CHANGES_SQL, values);
    const changes = rows.map(toTurnEvent);
    foldTurns(
      changes.filter(({ position }) => position <= this.upTo),
      turns,
    );
    const deleted = `select stream_version, type, data, schema_version, position from events
      where ${STREAM} and type = 'ChatMessageDeleted' and position > $3 and data ->> 'turnId' = any ($4)`;
    const later = await this.#db.query<EventRow>(deleted, [...this.#stream, this.upTo, [...turns.keys()]]);
    for (const { data } of later.rows) {
      const turn = turns.get(String(data['turnId']));
      if (turn) turns.set(turn.turnId, deleteTurnPart(turn, data['part'] as MessagePart));
    }
  }

  async #exists(): Promise<boolean> {
    const { rows } = await this.#db.query(EXISTS_SQL, [...this.#stream, this.upTo]);
    return rows.length > 0;
  }
}

/**
 * Returns a page of the turns of a session. Throws `SESSION.NOT_FOUND`, `GATEWAY.INVALID_CURSOR`,
 * `LOG.POSITION_AHEAD`.
 */
export const readTurns = async (pool: Pool, request: TurnsRequest): Promise<TurnsPage> => {
  try {
    if (request.at === undefined) return await new TurnsReader(pool, request, Number.MAX_SAFE_INTEGER).read();
    const { rows } = await pool.query<{ head: string }>(HEAD_SQL);
    const head = Number(rows[0]?.head ?? 0);
    const position = requirePosition(request.at, head);
    return { ...(await new TurnsReader(pool, request, position).read()), position, head };
  } catch (error) {
    throw translateDatabaseError(error);
  }
};
