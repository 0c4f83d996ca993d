import { translateDatabaseError } from '@antiphon/database';
import type { Pool } from 'pg';

/** How many sessions a workspace has ever had. */
export const countSessions = async (pool: Pool, workspace: string): Promise<number> => {
  const { rows } = await pool
    .query<{
      count: string;
    }>(`select count(*) from events where workspace = $1 and type = 'SessionStarted'`, [workspace])
    .catch((error: unknown) => {
      throw translateDatabaseError(error);
    });
  return Number(rows[0]?.count ?? 0);
};
