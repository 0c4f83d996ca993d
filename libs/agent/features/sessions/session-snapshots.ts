import type pg from 'pg';
import { translateDatabaseError } from '@antiphon/database';
import type { SessionFold } from './session-fold.js';

/**
 * Folds kept so that a long session need not be folded from its beginning. They are a cache of the log: any of them
 * may be deleted at any time. `signature` names the form of the fold; one of another form is not read.
 */
export interface SessionSnapshots {
  read(workspace: string, sessionId: string): Promise<SessionFold | null>;
  write(workspace: string, sessionId: string, fold: SessionFold): Promise<void>;
}

const READ_SQL = `select fold from agent_session_snapshots
  where workspace = $1 and session_id = $2 and signature = $3`;
/** An older process may be late with an older fold: the newer one stays. */
const WRITE_SQL = `insert into agent_session_snapshots as s (workspace, session_id, signature, version, fold, taken_at)
  values ($1, $2, $3, $4, $5, clock_timestamp())
  on conflict (workspace, session_id) do update
    set signature = excluded.signature, version = excluded.version, fold = excluded.fold, taken_at = excluded.taken_at
  where s.signature <> excluded.signature or s.version < excluded.version`;

const query = async <Row extends pg.QueryResultRow>(
  pool: pg.Pool,
  name: string,
  text: string,
  values: unknown[],
): Promise<Row[]> => {
  try {
    return (await pool.query<Row>({ name, text, values })).rows;
  } catch (error) {
    throw translateDatabaseError(error);
  }
};

export const createSessionSnapshots = (pool: pg.Pool, signature: string): SessionSnapshots => ({
  read: async (workspace, sessionId) => {
    const values = [workspace, sessionId, signature];
    const rows = await query<{ fold: SessionFold }>(pool, 'agent_read_snapshot', READ_SQL, values);
    return rows[0]?.fold ?? null;
  },
  write: async (workspace, sessionId, fold) => {
    const values = [workspace, sessionId, signature, fold.version, JSON.stringify(fold)];
    await query(pool, 'agent_write_snapshot', WRITE_SQL, values);
  },
});
