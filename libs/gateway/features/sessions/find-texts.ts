import { sessionStream } from '@antiphon/contracts/agent';
import { inWorkspace, translateDatabaseError } from '@antiphon/database';
import { notFound } from '@antiphon/kernel';
import type { Pool } from 'pg';
import { placesAt } from './find-turn.js';

/** Maximum number of turns that one search returns. */
const MAX_FOUND = 1_000;

/** Texts that have the wanted one, edits up to a position, and deletions at any time. */
const TEXTS_SQL = `select * from (
    select stream_version, type, data ->> 'turnId' as turn_id, data ->> 'part' as part,
      position(lower($3) in lower(coalesce(data ->> 'content', data ->> 'text', ''))) > 0 as has_text
    from events where workspace = $1 and stream_id = $2 and (
      (position <= $4 and (type in ('TurnRequested', 'ModelCallCompleted', 'AnswerForwarded', 'ChatMessageEdited')
        or (type = 'ModelCallAborted' and data ->> 'reason' = 'cancelled')))
      or type = 'ChatMessageDeleted')) texts
  where has_text or type in ('ChatMessageEdited', 'ChatMessageDeleted') order by stream_version`;
// Not a join: the planner takes a stream for small, and would scan the requests for each text.
const REQUESTS_SQL = `select data ->> 'turnId' as turn_id, position from events
  where workspace = $1 and stream_id = $2 and type = 'TurnRequested' and position <= $3`;

const EXISTS_SQL = 'select from events where workspace = $1 and stream_id = $2 and position <= $3 limit 1';

interface Row {
  readonly type: string;
  readonly turn_id: string;
  readonly part: string | null;
  readonly has_text: boolean;
}

interface RequestRow {
  readonly turn_id: string;
  readonly position: string;
}

/** A turn whose message or answer has a text. */
export interface FoundText {
  readonly turnId: string;
  /** Position of the request of the turn. */
  readonly position: number;
}

export interface FoundTexts {
  readonly found: FoundText[];
  readonly total: number;
}

interface Find {
  readonly workspace: string;
  readonly sessionId: string;
  readonly text: string;
  readonly at?: number | undefined;
}

/** Returns the turns that have the text now: an edit replaces the text, and a deletion removes it. */
const foundIn = (rows: readonly Row[], positions: ReadonlyMap<string, number>): FoundText[] => {
  const parts = new Map<string, { readonly turn: FoundText; hasText: boolean; isDeleted: boolean }>();
  for (const { type, turn_id: turnId, part, has_text: hasText } of rows) {
    const position = positions.get(turnId);
    if (position === undefined) continue;
    const name = type === 'TurnRequested' ? 'message' : (part ?? 'answer');
    const key = `${turnId} ${name}`;
    const turn = { turnId, position };
    const known = parts.get(key) ?? { turn, hasText: false, isDeleted: false };
    parts.set(key, known);
    if (type === 'ChatMessageDeleted') known.isDeleted = true;
    else known.hasText = type === 'ChatMessageEdited' ? hasText : known.hasText || hasText;
  }
  const turns = [...parts.values()].filter(({ hasText, isDeleted }) => hasText && !isDeleted);
  const unique = new Map(turns.map(({ turn }) => [turn.turnId, turn]));
  return [...unique.values()].sort((a, b) => a.position - b.position);
};

/**
 * Finds the turns of a session whose message or answer has a text, in any case of its letters.
 * Throws `SESSION.NOT_FOUND`.
 */
export const findTexts = async (
  pool: Pool,
  { workspace, sessionId, text, at }: Find,
): Promise<FoundTexts & { position?: number; head?: number }> => {
  try {
    const places: { position?: number; head?: number } = at === undefined ? {} : await placesAt(pool, at);
    const upTo = places.position ?? Number.MAX_SAFE_INTEGER;
    const queries = inWorkspace(pool, workspace);
    const stream = sessionStream(sessionId);
    const texts = await queries.query<Row>(TEXTS_SQL, [workspace, stream, text, upTo]);
    const requests = await queries.query<RequestRow>(REQUESTS_SQL, [workspace, stream, upTo]);
    if (requests.rows.length === 0) {
      const known = await queries.query(EXISTS_SQL, [workspace, stream, upTo]);
      if (known.rows.length === 0) throw notFound('SESSION.NOT_FOUND', `there is no session ${sessionId}`);
    }
    const positions = new Map(requests.rows.map((row) => [row.turn_id, Number(row.position)]));
    const found = foundIn(texts.rows, positions);
    return { found: found.slice(0, MAX_FOUND), total: found.length, ...places };
  } catch (error) {
    throw translateDatabaseError(error);
  }
};
