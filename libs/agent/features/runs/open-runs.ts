import type pg from 'pg';
import { translateDatabaseError } from '@antiphon/database';

export interface OpenRun {
  readonly workspace: string;
  readonly runId: string;
  readonly firstAgent: string;
  readonly cancelling: boolean;
}

interface Row {
  readonly workspace: string;
  readonly run_id: string;
  readonly first_agent: string;
  readonly status: string;
  readonly first_position: string;
}

const PAGE = 500;
const OPEN_SQL = `select workspace, run_id, first_agent, status, first_position from agent_runs
  where ended_at is null and first_position > $1 order by first_position limit $2`;

/** Every run that the log says is open, oldest first. */
export async function* openRuns(pool: pg.Pool): AsyncGenerator<OpenRun> {
  let after = '0';
  for (;;) {
    const query = { name: 'agent_open_runs', text: OPEN_SQL, values: [after, PAGE] };
    const { rows } = await pool.query<Row>(query).catch((error: unknown) => {
      throw translateDatabaseError(error);
    });
    for (const row of rows)
      yield {
        workspace: row.workspace,
        runId: row.run_id,
        firstAgent: row.first_agent,
        cancelling: row.status === 'cancelling',
      };
    if (rows.length < PAGE) return;
    after = rows.at(-1)?.first_position ?? after;
  }
}
