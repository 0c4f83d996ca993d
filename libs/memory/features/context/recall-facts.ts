import type pg from 'pg';
import type { Fact } from '@antiphon/contracts/memory';
import { notFound, transient } from '@antiphon/kernel';
import { isActive, learnFacts } from '@antiphon/memory-domain';
import { LEARNED_TYPES, factIds, toSaid, toStarted } from '../projections/session-memory.events.js';
import type { SessionRecord } from '../projections/session-memory.events.js';
import { createRowReader, readTail } from './recall-rows.js';
import type { ReadRows, RememberedRows, SessionQuestion } from './recall-rows.js';

export type { SessionQuestion } from './recall-rows.js';

export interface Recalled {
  /** Facts in the order in which they were learned. */
  readonly facts: readonly Fact[];
  /** Version of the session's stream that the facts include. */
  readonly version: number;
}

/** Maximum earlier sessions of a key that a request reads while the projection has none of them. */
const MAX_SESSIONS_BACK = 8;

const startOf = (events: readonly SessionRecord[]): ReturnType<typeof toStarted> | null => {
  const event = events.find(({ type }) => type === 'SessionStarted');
  return event === undefined ? null : toStarted(event);
};

/**
 * Reads events of the key's earlier sessions after the checkpoint. The projection follows the log's
 * order: once it has a session, it has everything before it. So this is needed for new sessions
 * only.
 */
const readEarlier = async (
  pool: pg.Pool,
  workspace: string,
  first: string | undefined,
  checkpoint: number,
): Promise<readonly SessionRecord[]> => {
  const tails: (readonly SessionRecord[])[] = [];
  for (let id = first; id !== undefined && tails.length < MAX_SESSIONS_BACK;) {
    const events = await readTail(pool, workspace, id, checkpoint);
    tails.unshift(events);
    id = startOf(events)?.previousSessionId;
  }
  return tails.flat();
};

const fold = (facts: readonly Fact[], events: readonly SessionRecord[]): readonly Fact[] =>
  events
    .filter(({ type }) => LEARNED_TYPES.includes(type))
    .reduce((known, event) => learnFacts(known, toSaid(event), factIds), facts);

/** Folds the stream's later events onto the facts of the rows. */
const catchUp = async (
  pool: pg.Pool,
  workspace: string,
  rows: RememberedRows,
  events: readonly SessionRecord[],
): Promise<readonly Fact[]> => {
  const previous = rows.version === 0 ? startOf(events)?.previousSessionId : undefined;
  const earlier = await readEarlier(pool, workspace, previous, rows.checkpoint);
  return fold(rows.facts, [...earlier, ...events]);
};

const unknownSession = (sessionId: string): Error =>
  notFound('MEMORY.SESSION_UNKNOWN', `there is no session ${sessionId}`);

/** Reads the rows of a session. For a session that has none yet, its stream provides the key. */
const readKnown = async (readRows: ReadRows, question: SessionQuestion): Promise<RememberedRows> => {
  const rows = await readRows(question);
  if (rows.version > 0 || question.sessionKey !== null) return rows;
  const start = startOf(rows.tail?.events ?? []);
  if (start === null) throw unknownSession(question.sessionId);
  return readRows({ ...question, sessionKey: start.sessionKey });
};

/** Nest token of RecallFacts. */
export const RECALL_FACTS = Symbol('RECALL_FACTS');

export type RecallFacts = (question: SessionQuestion) => Promise<Recalled>;

/**
 * Recalls the facts of a session, at `atLeast` or later. Where the projection lags, later events
 * are read from the session's stream and folded on top, without a wait. A session about to start
 * (key given, `atLeast` 0) has the facts of its key.
 *
 * Throws `MEMORY.SESSION_UNKNOWN` (not found) for a session without key and stream, and
 * `MEMORY.VERSION_AHEAD` (transient) when the append of that version is not committed yet.
 */
export const createRecallFacts = (pool: pg.Pool): RecallFacts => {
  const readRows = createRowReader(pool);
  return async (question) => {
    const { workspace, atLeast, includeSuperseded, sessionId } = question;
    const rows = await readKnown(readRows, question);
    if (rows.tail === null) return { facts: rows.facts, version: rows.version };
    const { head, events } = rows.tail;
    if (atLeast !== 'newest' && head < atLeast)
      throw transient('MEMORY.VERSION_AHEAD', 'the session has not reached this version yet', {
        data: { sessionId, version: head, atLeast },
      });
    const facts = await catchUp(pool, workspace, rows, events);
    return { facts: includeSuperseded ? facts : facts.filter(isActive), version: head };
  };
};
