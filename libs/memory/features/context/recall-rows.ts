import type pg from 'pg';
import { sessionStream } from '@antiphon/contracts/agent';
import type { Fact } from '@antiphon/contracts/memory';
import { inWorkspace, translateDatabaseError } from '@antiphon/database';
import type { JsonObject } from '@antiphon/kernel';
import { keyHashOf } from '../projections/session-memory.events.js';
import { PROJECTION_NAME, REMEMBERED_TYPES } from '../projections/session-memory.events.js';
import type { SessionRecord } from '../projections/session-memory.events.js';

/** Maximum facts of a key that a request reads, the newest ones. */
export const MAX_FACTS_READ = 500;

/**
 * Reads checkpoint, version, facts and the stream's later events in one statement, so in one
 * snapshot: no event is folded twice or left out. The stream is only read where the version is
 * below $6. Facts and events are one JSON text each, oldest first. Decoding sixty facts column by
 * column took the client four times as long as the query took the server.
 *
 * - $1 workspace
 * - $2 session
 * - $3 hash of the session's key, null for that of its row
 * - $4 whether to include superseded facts
 * - $5 name of the checkpoint
 * - $6 version from which the rows suffice
 * - $7 stream of the session
 * - $8 types of events
 */
export const RECALL_SQL = `select
    coalesce((select position from projection_checkpoints where name = $5), 0) as checkpoint,
    s.version, s.session_key,
    (select json_agg(json_build_array(fact_id, subject, predicate, object, confidence, learned_at, superseded_at,
        source_event_id) order by position, ordinal)
      from (select * from memory_facts m
        where m.workspace = $1 and m.key_hash = coalesce($3::bytea, s.key_hash) and ($4 or m.superseded_at is null)
        order by position desc, ordinal desc limit ${MAX_FACTS_READ}) newest) as facts,
    case when coalesce(s.version, 0) < $6::bigint then coalesce(
      (select version from stream_heads where workspace = $1 and stream_id = $7), 0) end as head,
    case when coalesce(s.version, 0) < $6::bigint then
      (select json_agg(json_build_array(e.event_id, e.type, e.schema_version, e.data) order by e.stream_version)
        from events e where e.workspace = $1 and e.stream_id = $7 and e.stream_version > coalesce(s.version, 0)
          and e.type = any ($8)) end as behind
  from (select) as always
  left join memory_sessions s on s.workspace = $1 and s.session_id = $2`;

/**
 * Reads the events of a session's stream that memory uses, after a position of the log, oldest
 * first.
 */
export const TAIL_SQL = `select event_id, type, schema_version, data from events
  where workspace = $1 and stream_id = $2 and position > $3 and type = any ($4) order by stream_version`;

/** Facts of the rows in one snapshot. */
export interface RememberedRows {
  /** Position of the log up to which the rows are complete. */
  readonly checkpoint: number;
  /** Version of the session's event stream; 0 for a session without rows. */
  readonly version: number;
  readonly sessionKey: string | null;
  /** Facts in the order in which they were learned. */
  readonly facts: readonly Fact[];
  /** Later events of the session's stream, null where the rows suffice. */
  readonly tail: StreamTail | null;
}

/** Events of a session's stream that the rows lack, in the same snapshot. */
export interface StreamTail {
  /** Version of the stream, 0 where there is none. */
  readonly head: number;
  readonly events: readonly SessionRecord[];
}

export interface SessionQuestion {
  readonly workspace: string;
  readonly sessionId: string;
  /** Null selects the key of the session's row. */
  readonly sessionKey: string | null;
  readonly includeSuperseded: boolean;
  /**
   * Version of the session's stream that the facts must include; `newest` includes all committed
   * events.
   */
  readonly atLeast: number | 'newest';
}

type FactTuple = readonly [
  factId: string,
  subject: string,
  predicate: string,
  object: string,
  confidence: number,
  learnedAt: string,
  supersededAt: string | null,
  sourceEventId: string,
];

interface RecallRow {
  readonly checkpoint: string;
  readonly version: string | null;
  readonly session_key: string | null;
  readonly facts: readonly FactTuple[] | null;
  readonly head: string | null;
  readonly behind: readonly EventTuple[] | null;
}

type EventTuple = readonly [eventId: string, type: string, schemaVersion: number, data: JsonObject];

const toRecord = ([eventId, type, schemaVersion, data]: EventTuple): SessionRecord => ({
  eventId,
  type,
  schemaVersion,
  data,
});

/**
 * Returns the version from which the rows suffice; at least 1, as a session without rows may have a
 * stream.
 */
const sufficientVersion = (atLeast: SessionQuestion['atLeast']): number =>
  atLeast === 'newest' ? Number.MAX_SAFE_INTEGER : Math.max(1, atLeast);

/** Converts a time of the server, which is in its zone and without trailing zeros. */
const isoOf = (time: string): string => new Date(time).toISOString();

const toFact = (tuple: FactTuple): Fact => {
  const [factId, subject, predicate, object, confidence, learnedAt, supersededAt, sourceEventId] = tuple;
  return {
    factId,
    subject,
    predicate,
    object,
    confidence,
    learnedAt: isoOf(learnedAt),
    supersededAt: supersededAt === null ? null : isoOf(supersededAt),
    sourceEventId,
  };
};

export const readRows = async (pool: pg.Pool, question: SessionQuestion): Promise<RememberedRows> => {
  const { workspace, sessionId, sessionKey, includeSuperseded, atLeast } = question;
  const hash = sessionKey === null ? null : keyHashOf(sessionKey);
  const values = [
    ...[workspace, sessionId, hash, includeSuperseded, PROJECTION_NAME],
    ...[sufficientVersion(atLeast), sessionStream(sessionId), REMEMBERED_TYPES],
  ];
  const { rows } = await inWorkspace(pool, workspace)
    .query<RecallRow>({ name: 'memory_recall', text: RECALL_SQL, values })
    .catch((error: unknown) => {
      throw translateDatabaseError(error);
    });
  const [row] = rows;
  return {
    checkpoint: Number(row?.checkpoint ?? 0),
    version: Number(row?.version ?? 0),
    sessionKey: row?.session_key ?? null,
    facts: row?.facts?.map(toFact) ?? [],
    tail:
      row === undefined || row.head === null
        ? null
        : { head: Number(row.head), events: row.behind?.map(toRecord) ?? [] },
  };
};

interface TailRow {
  readonly event_id: string;
  readonly type: string;
  readonly schema_version: number;
  readonly data: JsonObject;
}

/** Reads a session's events after a position of the log. */
export const readTail = async (
  pool: pg.Pool,
  workspace: string,
  sessionId: string,
  position: number,
): Promise<readonly SessionRecord[]> => {
  const values = [workspace, sessionStream(sessionId), position, REMEMBERED_TYPES];
  const query = { name: 'memory_tail_position', text: TAIL_SQL, values };
  const { rows } = await inWorkspace(pool, workspace)
    .query<TailRow>(query)
    .catch((error: unknown) => {
      throw translateDatabaseError(error);
    });
  return rows.map(({ event_id: eventId, type, schema_version: schemaVersion, data }) => ({
    eventId,
    type,
    schemaVersion,
    data,
  }));
};
