import type pg from 'pg';
import { sessionStream } from '@antiphon/contracts/agent';
import { acrossWorkspaces, translateDatabaseError } from '@antiphon/database';

export interface SessionRef {
  readonly workspace: string;
  readonly sessionId: string;
}

/** Reads the versions of many sessions' event streams in one query; 0 for those without one. */
export type ReadVersions = (sessions: readonly SessionRef[]) => Promise<readonly number[]>;

const VERSIONS_SQL = `select coalesce(h.version, 0) as version
  from unnest($1::text[], $2::text[]) with ordinality as s (workspace, stream_id, ord)
  left join stream_heads h on h.workspace = s.workspace and h.stream_id = s.stream_id
  order by s.ord`;

/**
 * Selects sessions with open turns and no live lease, unless they wait for an approval; the longest
 * inactive first. The name of the lease is computed in a subquery of its own: behind a policy, an
 * index look-up may not compute anything.
 */
const ABANDONED_SQL = `select s.workspace, s.session_id
  from (select *, 'session/' || session_id as lease from agent_sessions where open_turns > 0 offset 0) s
  left join leases l on l.workspace = s.workspace and l.name = s.lease
  where not exists (select from agent_approvals a
      where a.workspace = s.workspace and a.session_id = s.session_id and a.status = 'pending')
    and (l.owner is null or l.expires_at <= clock_timestamp())
  order by s.last_position limit $1`;

const query = async <Row extends pg.QueryResultRow>(
  pool: pg.Pool,
  statement: { readonly name: string; readonly text: string; readonly values: unknown[] },
): Promise<Row[]> => {
  try {
    return (await acrossWorkspaces(pool).query<Row>(statement)).rows;
  } catch (error) {
    throw translateDatabaseError(error);
  }
};

export const createReadVersions =
  (pool: pg.Pool): ReadVersions =>
  async (sessions) => {
    const values = [
      sessions.map(({ workspace }) => workspace),
      sessions.map(({ sessionId }) => sessionStream(sessionId)),
    ];
    const rows = await query<{ version: string }>(pool, {
      name: 'agent_versions',
      text: VERSIONS_SQL,
      values,
    });
    return rows.map(({ version }) => Number(version));
  };

/** Returns at most `limit` sessions whose driver is gone. */
export const findAbandoned = async (pool: pg.Pool, limit: number): Promise<SessionRef[]> => {
  const rows = await query<{ workspace: string; session_id: string }>(pool, {
    name: 'agent_abandoned',
    text: ABANDONED_SQL,
    values: [limit],
  });
  return rows.map(({ workspace, session_id: sessionId }) => ({ workspace, sessionId }));
};
