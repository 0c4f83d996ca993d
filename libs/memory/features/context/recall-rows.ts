import type pg from 'pg';
import { sessionStream } from '@antiphon/contracts/agent';
import type { Fact } from '@antiphon/contracts/memory';
import { inWorkspace, translateDatabaseError } from '@antiphon/database';
import { createBoundedMap, createReadBatcher } from '@antiphon/kernel';
import type { JsonObject } from '@antiphon/kernel';
import { keyHashOf } from '../projections/session-memory.events.js';
import { PROJECTION_NAME, REMEMBERED_TYPES } from '../projections/session-memory.events.js';
import type { SessionRecord } from '../projections/session-memory.events.js';

/** Maximum facts of a key that a request reads, the newest ones. */
export const MAX_FACTS_READ = 500;

/** Maximum sessions that one statement reads. */
const MAX_SESSIONS_READ = 32;

/** Maximum workspaces whose questions are read together; a further one displaces the oldest. */
const MAX_WORKSPACES = 1_000;

/**
 * Reads checkpoint, version, facts and later events of several sessions. One statement has one
 * snapshot, so no event is folded twice or left out. A stream is only read where
 * the version is below the sufficient one. Facts and events are one JSON text each, oldest first.
 * Decoding sixty facts column by column took the client four times as long as the query took the
 * server. PostgreSQL does not know `coalesce` of a column as leakproof. Under a policy, a condition
 * with it reaches no index; one with `case` does.
 *
 * - $1 workspace
 * - $2 name of the checkpoint
 * - $3 types of events
 * - $4 sessions
 * - $5 streams of the sessions
 * - $6 hashes of the sessions' keys, null for that of the row
 * - $7 whether to include superseded facts
 * - $8 versions from which the rows suffice
 */
export const RECALL_SQL = `select
    coalesce((select position from projection_checkpoints where name = $2), 0) as checkpoint,
    s.version, s.session_key,
    (select json_agg(json_build_array(fact_id, subject, predicate, object, confidence, learned_at, superseded_at,
        source_event_id) order by position, ordinal)
      from (select * from memory_facts m
        where m.workspace = $1 and m.key_hash = case when q.key_hash is null then s.key_hash else q.key_hash end
          and (q.with_superseded or m.superseded_at is null)
        order by position desc, ordinal desc limit ${MAX_FACTS_READ}) newest) as facts,
    case when coalesce(s.version, 0) < q.sufficient then coalesce(
      (select version from stream_heads where workspace = $1 and stream_id = q.stream_id), 0) end as head,
    case when coalesce(s.version, 0) < q.sufficient then
      (select json_agg(json_build_array(e.event_id, e.type, e.schema_version, e.data) order by e.stream_version)
        from events e where e.workspace = $1 and e.stream_id = q.stream_id
          and e.stream_version > case when s.version is null then 0 else s.version end and e.type = any ($3)) end as behind
  from unnest($4::uuid[], $5::text[], $6::bytea[], $7::boolean[], $8::bigint[])
    with ordinality as q (session_id, stream_id, key_hash, with_superseded, sufficient, ordinal)
  left join lateral (select * from memory_sessions where workspace = $1 and session_id = q.session_id offset 0) s on true
  order by q.ordinal`;

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

const toRememberedRows = (row: RecallRow): RememberedRows => ({
  checkpoint: Number(row.checkpoint),
  version: Number(row.version ?? 0),
  sessionKey: row.session_key,
  facts: row.facts?.map(toFact) ?? [],
  tail: row.head === null ? null : { head: Number(row.head), events: row.behind?.map(toRecord) ?? [] },
});

const readBatch = async (
  pool: pg.Pool,
  workspace: string,
  questions: readonly SessionQuestion[],
): Promise<readonly RememberedRows[]> => {
  const values = [
    ...[workspace, PROJECTION_NAME, REMEMBERED_TYPES],
    questions.map(({ sessionId }) => sessionId),
    questions.map(({ sessionId }) => sessionStream(sessionId)),
    questions.map(({ sessionKey }) => (sessionKey === null ? null : keyHashOf(sessionKey))),
    questions.map(({ includeSuperseded }) => includeSuperseded),
    questions.map(({ atLeast }) => sufficientVersion(atLeast)),
  ];
  const { rows } = await inWorkspace(pool, workspace)
    .query<RecallRow>({ name: 'memory_recall', text: RECALL_SQL, values })
    .catch((error: unknown) => {
      throw translateDatabaseError(error);
    });
  return rows.map(toRememberedRows);
};

export type ReadRows = (question: SessionQuestion) => Promise<RememberedRows>;

/** Returns a reader of rows. Questions of one workspace are read together, one batch at a time. */
export const createRowReader = (pool: pg.Pool): ReadRows => {
  const batchers = createBoundedMap<ReadRows>(MAX_WORKSPACES);
  return (question) => {
    const { workspace } = question;
    const known = batchers.get(workspace);
    if (known) return known(question);
    const created = createReadBatcher<SessionQuestion, RememberedRows>(
      (questions) => readBatch(pool, workspace, questions),
      MAX_SESSIONS_READ,
    );
    batchers.put(workspace, created);
    return created(question);
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
