import type pg from 'pg';
import { sessionStream } from '@antiphon/contracts/agent';
import type { Fact } from '@antiphon/contracts/memory';
import { translateDatabaseError } from '@antiphon/database';
import type { JsonObject } from '@antiphon/kernel';
import { keyHashOf } from '../projections/fact-rows.js';
import { PROJECTION_NAME, REMEMBERED_TYPES } from '../projections/session-memory.events.js';
import type { SessionRecord } from '../projections/session-memory.events.js';
import { RECALL_SQL } from './recall-sql.js';

/** What the rows say at one moment. */
export interface RememberedRows {
  /** Position of the log up to which the rows are complete. */
  readonly checkpoint: number;
  /** Of the session's event stream; 0 when the rows do not know the session yet. */
  readonly version: number;
  readonly sessionKey: string | null;
  /** In the order in which they were learned. */
  readonly facts: readonly Fact[];
  /** The session's event stream, where the rows are not enough; else null. */
  readonly tail: StreamTail | null;
}

/** What a session's event stream has behind the rows, seen at the same moment. */
export interface StreamTail {
  /** Its version, 0 when there is no such stream. */
  readonly head: number;
  readonly events: readonly SessionRecord[];
}

export interface SessionQuestion {
  readonly workspace: string;
  readonly sessionId: string;
  /** Null: as the session's row says. */
  readonly sessionKey: string | null;
  readonly includeSuperseded: boolean;
  /** Version of the session's event stream that the answer must have seen; `newest`: whatever has been committed. */
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

/** A version from which the rows are enough: a session that they do not know yet may have a stream. */
const enoughFrom = (atLeast: SessionQuestion['atLeast']): number =>
  atLeast === 'newest' ? Number.MAX_SAFE_INTEGER : Math.max(1, atLeast);

/** The server writes times in its own zone and without needless zeros. */
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
    ...[enoughFrom(atLeast), sessionStream(sessionId), REMEMBERED_TYPES],
  ];
  const { rows } = await pool
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
