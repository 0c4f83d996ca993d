import type { AgentView } from '@antiphon/contracts/agent';
import { translateDatabaseError, type WorkspaceQueries } from '@antiphon/database';

type OpenWork = NonNullable<AgentView['current']>;

/** The open session of each agent: one that waits for an approval first, then the newest one. */
const OPEN_SQL = `select distinct on (o.agent_id) o.agent_id, s.session_id, p.approval_id, t.id as task_id
  from agent_sessions s
  join agent_session_agents o on o.workspace = s.workspace and o.session_id = s.session_id
  left join lateral (select approval_id from agent_approvals p where p.workspace = s.workspace
    and p.session_id = s.session_id and p.status = 'pending' order by p.first_position limit 1) p on true
  left join lateral (select id from agent_tasks t where t.workspace = s.workspace
    and t.session_id = s.session_id and t.ended_at is null order by t.first_position limit 1) t on true
  where s.workspace = $1 and s.open_turns > 0 and o.agent_id = any ($2::text[])
  order by o.agent_id, p.approval_id is null, s.last_position desc`;

interface Row {
  readonly agent_id: string;
  readonly session_id: string;
  readonly approval_id: string | null;
  readonly task_id: string | null;
}

/** Returns the open session of each of these agents that has one. */
export const readOpenWork = async (
  queries: WorkspaceQueries,
  workspace: string,
  agentIds: readonly string[],
): Promise<ReadonlyMap<string, OpenWork>> => {
  if (agentIds.length === 0) return new Map();
  try {
    const query = { name: 'agent_open_work', text: OPEN_SQL, values: [workspace, agentIds] };
    const { rows } = await queries.query<Row>(query);
    return new Map(
      rows.map(({ agent_id: id, session_id: sessionId, approval_id: approvalId, task_id: taskId }) => [
        id,
        { sessionId, taskId, approvalId },
      ]),
    );
  } catch (error) {
    throw translateDatabaseError(error);
  }
};
