import type pg from 'pg';
import type { Fact } from '@antiphon/contracts/memory';
import { notFound, transient } from '@antiphon/kernel';
import { isActive, learnFacts } from '@antiphon/memory-domain';
import { LEARNED_TYPES, factIds, toSaid, toStarted } from '../projections/session-memory.events.js';
import type { SessionRecord } from '../projections/session-memory.events.js';
import { readRows } from './read-rows.js';
import type { RememberedRows, SessionQuestion } from './read-rows.js';
import { readTail } from './read-tail.js';

export type RecallQuestion = SessionQuestion;

export interface Recalled {
  /** In the order in which they were learned. */
  readonly facts: readonly Fact[];
  /** The version that they have seen. */
  readonly version: number;
}

/** Sessions of a key that a request looks back through while the projection knows none of them. */
const MAX_SESSIONS_BACK = 8;

const startOf = (events: readonly SessionRecord[]): ReturnType<typeof toStarted> | null => {
  const event = events.find(({ type }) => type === 'SessionStarted');
  return event === undefined ? null : toStarted(event);
};

/**
 * What earlier sessions of the key said behind the checkpoint. The projection follows the log's order: once it knows
 * a session, it knows all that was said before that session began, so this is asked for new sessions only.
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

/** The facts of the rows with what the stream has behind them folded on top. */
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

/** The rows of a session; of one that they do not know yet, its stream says the key. */
const readKnown = async (pool: pg.Pool, question: SessionQuestion): Promise<RememberedRows> => {
  const rows = await readRows(pool, question);
  if (rows.version > 0 || question.sessionKey !== null) return rows;
  const start = startOf(rows.tail?.events ?? []);
  if (start === null) throw unknownSession(question.sessionId);
  return readRows(pool, { ...question, sessionKey: start.sessionKey });
};

export type RecallFacts = (question: RecallQuestion) => Promise<Recalled>;

/**
 * What is known in a session, at `atLeast` or later. Where the projection lags, the rest is read from the session's
 * event stream and folded on top: nobody waits. A session that is about to begin (its key given, `atLeast` 0) knows
 * what its key knows. Throws `MEMORY.SESSION_UNKNOWN` (not found) for a session without key and stream,
 * `MEMORY.VERSION_AHEAD` (transient) when the stream has not got that far: its append has not been committed.
 */
export const createRecallFacts =
  (pool: pg.Pool): RecallFacts =>
  async (question) => {
    const { workspace, atLeast, includeSuperseded, sessionId } = question;
    const rows = await readKnown(pool, question);
    if (rows.tail === null) return { facts: rows.facts, version: rows.version };
    const { head, events } = rows.tail;
    if (atLeast !== 'newest' && head < atLeast)
      throw transient('MEMORY.VERSION_AHEAD', 'the session has not got to this version yet', {
        data: { sessionId, version: head, atLeast },
      });
    const facts = await catchUp(pool, workspace, rows, events);
    return { facts: includeSuperseded ? facts : facts.filter(isActive), version: head };
  };
