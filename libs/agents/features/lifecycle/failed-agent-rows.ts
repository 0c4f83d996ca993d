import type pg from 'pg';
import { acrossWorkspaces, translateDatabaseError } from '@antiphon/database';
import type { AgentRef } from './agent-rows.js';

/** An agent in error that can be retried. */
export interface FailedAgent extends AgentRef {
  readonly openTurns: number;
  /** Time at which its trial began, ISO 8601; null without one. */
  readonly trialSince: string | null;
}

/** Rows of earlier versions have no failure. */
const FAILED_SQL = `select a.workspace, a.agent_id, coalesce(t.open_turns, 0) as open_turns,
    a.record #>> '{failure,trial,since}' as trial_since from agent_agents a
  left join agent_activity t on t.workspace = a.workspace and t.agent_id = a.agent_id
  where a.status = 'error'
    and coalesce(a.record #>> '{failure,retryAt}', a.record ->> 'changedAt')::timestamptz <= $1 limit 100`;
const COUNT_FAILED_SQL = `select count(*)::int as agents, coalesce(sum(t.open_turns), 0)::int as turns
  from agent_agents a left join agent_activity t on t.workspace = a.workspace and t.agent_id = a.agent_id
  where a.status = 'error'`;

/** Reads of the rows of agents in the state `error`, of all workspaces. */
export class FailedAgentRows {
  constructor(private readonly pool: pg.Pool) {}

  /** Returns agents in error whose time to be retried has come. */
  async findDue(now: Date): Promise<FailedAgent[]> {
    type Row = { workspace: string; agent_id: string; open_turns: number; trial_since: string | null };
    const rows = await this.run<Row>('failed', FAILED_SQL, [now]);
    return rows.map((row) => ({
      ...{ workspace: row.workspace, agentId: row.agent_id },
      ...{ openTurns: row.open_turns, trialSince: row.trial_since },
    }));
  }

  /** Counts the agents in error of all workspaces, and their open turns. */
  async count(): Promise<{ readonly agents: number; readonly turns: number }> {
    type Row = { agents: number; turns: number };
    const [row] = await this.run<Row>('count_failed', COUNT_FAILED_SQL, []);
    return row ?? { agents: 0, turns: 0 };
  }

  private async run<Row extends pg.QueryResultRow>(
    name: string,
    text: string,
    values: unknown[],
  ): Promise<Row[]> {
    try {
      return (await acrossWorkspaces(this.pool).query<Row>({ name: `agent_rows_${name}`, text, values }))
        .rows;
    } catch (error) {
      throw translateDatabaseError(error);
    }
  }
}
