import type pg from 'pg';
import { sessionStream } from '@antiphon/contracts/agent';
import { translateDatabaseError } from '@antiphon/database';

export interface SessionRef {
  readonly workspace: string;
  readonly sessionId: string;
}

/** Versions of many sessions' event streams in one query, 0 for those that have none. */
export type ReadVersions = (sessions: readonly SessionRef[]) => Promise<readonly number[]>;

const SQL = `select coalesce(h.version, 0) as version
  from unnest($1::text[], $2::text[]) with ordinality as s (workspace, stream_id, ord)
  left join stream_heads h on h.workspace = s.workspace and h.stream_id = s.stream_id
  order by s.ord`;

export const createReadVersions =
  (pool: pg.Pool): ReadVersions =>
  async (sessions) => {
    const values = [
      sessions.map(({ workspace }) => workspace),
      sessions.map(({ sessionId }) => sessionStream(sessionId)),
    ];
    try {
      const { rows } = await pool.query<{ version: string }>({ name: 'agent_versions', text: SQL, values });
      return rows.map(({ version }) => Number(version));
    } catch (error) {
      throw translateDatabaseError(error);
    }
  };
