import type pg from 'pg';
import type { AgentView, listAgents } from '@antiphon/contracts/agent';
import type { z } from 'zod';
import type { AntiphonConfig } from '@antiphon/config';
import { translateDatabaseError } from '@antiphon/database';

export type ListAgentsReply = z.input<typeof listAgents.reply>;
export type ListAgents = (workspace: string) => Promise<ListAgentsReply>;

const WORKING_SQL = `select distinct agent_id from agent_sessions where workspace = $1 and open_turns > 0`;

const workingAgents = async (pool: pg.Pool, workspace: string): Promise<Set<string>> => {
  try {
    const query = { name: 'agent_working', text: WORKING_SQL, values: [workspace] };
    const { rows } = await pool.query<{ agent_id: string }>(query);
    return new Set(rows.map(({ agent_id: id }) => id));
  } catch (error) {
    throw translateDatabaseError(error);
  }
};

/** Makes the use case behind `cmd.agent.agent.list`: the configured agents, and whether any turn of theirs is open. */
export const createListAgents =
  (config: AntiphonConfig, pool: pg.Pool): ListAgents =>
  async (workspace) => {
    const working = await workingAgents(pool, workspace);
    const agents = config.agents.map(
      ({ id, name, role, provider, model, tools, capabilities, position }, index): AgentView => ({
        id,
        name,
        role,
        provider,
        model,
        tools: [...tools],
        capabilities: [...capabilities],
        position,
        state: working.has(id) ? 'working' : 'idle',
        isDefault: index === 0,
      }),
    );
    return { agents };
  };
