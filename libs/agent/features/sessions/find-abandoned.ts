import type pg from 'pg';
import { translateDatabaseError } from '@antiphon/database';

export interface FoundSession {
  readonly workspace: string;
  readonly sessionId: string;
}

/** Sessions with open turns that nobody holds a live lease of, unless they wait for somebody's word; the longest quiet first. */
const ABANDONED_SQL = `select s.workspace, s.session_id
  from agent_sessions s left join leases l on l.workspace = s.workspace and l.name = 'session/' || s.session_id
  where s.open_turns > 0
    and not exists (select from agent_approvals a
      where a.workspace = s.workspace and a.session_id = s.session_id and a.status = 'pending')
    and (l.owner is null or l.expires_at <= clock_timestamp())
  order by s.last_position limit $1`;

export const findAbandoned = async (pool: pg.Pool, limit: number): Promise<FoundSession[]> => {
  try {
    const query = { name: 'agent_abandoned', text: ABANDONED_SQL, values: [limit] };
    const { rows } = await pool.query<{ workspace: string; session_id: string }>(query);
    return rows.map(({ workspace, session_id: sessionId }) => ({ workspace, sessionId }));
  } catch (error) {
    throw translateDatabaseError(error);
  }
};
