import type pg from 'pg';
import { sessionStream } from '@antiphon/contracts/agent';
import { inWorkspace, translateDatabaseError } from '@antiphon/database';

/** The result of a call, by its content in the log, or by the digest of its stored bytes. */
export interface FoundResult {
  readonly size: number;
  readonly stored: { readonly digest: string; readonly size: number } | null;
  readonly content: Uint8Array | null;
}

interface Row {
  readonly stored: { readonly digest: string; readonly size: number } | null;
  readonly content: string | null;
}

// A result of a deleted message is not read. The first event of a fork names its origin.
const RESULT_SQL = `select e.data -> 'stored' as stored,
    case when e.data ? 'stored' then null else e.data ->> 'content' end as content
  from events e where e.workspace = $1 and e.stream_id = $2 and e.stream_version <= $4
    and e.type = 'ToolCallCompleted' and (e.data ->> 'callId' = $3 or e.data #>> '{stored,digest}' = $3)
    and not exists (select from events d where d.workspace = $1 and d.stream_id = $2
      and d.type = 'ChatMessageDeleted' and d.data ->> 'turnId' = e.data ->> 'turnId')
  order by e.stream_version desc limit 1`;
const ORIGIN_SQL = `select data #>> '{origin,sessionId}' as session, (data #>> '{origin,version}')::bigint as version
  from events where workspace = $1 and stream_id = $2 and type = 'SessionForked' and stream_version <= 2`;

/** Maximum number of forks from which a session comes. */
const MAX_ORIGINS = 10;
const ALL = Number.MAX_SAFE_INTEGER;

/** Finds the result of a call of a session, or of the sessions that it was forked from. */
export const findResult = async (
  pool: pg.Pool,
  workspace: string,
  sessionId: string,
  result: string,
): Promise<FoundResult | null> => {
  const database = inWorkspace(pool, workspace);
  let [session, upTo] = [sessionId, ALL];
  try {
    for (let depth = 0; depth < MAX_ORIGINS; depth++) {
      const stream = sessionStream(session);
      const query = {
        name: 'agent_call_result',
        text: RESULT_SQL,
        values: [workspace, stream, result, upTo],
      };
      const [row] = (await database.query<Row>(query)).rows;
      if (row) return toFound(row);
      const { rows } = await database.query<{ session: string; version: string }>(ORIGIN_SQL, [
        workspace,
        stream,
      ]);
      const [origin] = rows;
      if (!origin) return null;
      [session, upTo] = [origin.session, Number(origin.version)];
    }
    return null;
  } catch (error) {
    throw translateDatabaseError(error);
  }
};

const toFound = ({ stored, content }: Row): FoundResult => {
  if (stored) return { size: stored.size, stored, content: null };
  const bytes = Buffer.from(content ?? '');
  return { size: bytes.length, stored: null, content: bytes };
};
