import { COMPARED_DAYS } from '@antiphon/config';
import { PastReads, type ProjectionDefinition } from '@antiphon/event-store';
import type pg from 'pg';
import { projectAgents } from '@antiphon/agents-features/projections';
import { agentChannels } from '@antiphon/channels-features/projections';
import {
  ASKED_FOR,
  projectAgentSessions,
  projectApprovals,
  projectGenerations,
} from '@antiphon/conversation-features/projections';
import { agentRuns, agentTasks } from '@antiphon/orchestration-features/projections';

export { compareSnapshots } from '@antiphon/conversation-features/projections';

/** Most of the bytes of sessions: only the state of an agent depends on some of them. */
const UNUSED_TYPES = ['ToolCallRequested', 'ToolCallClaimed', 'ToolCallCompleted'];
const MODEL_CALLS = ['ModelCallStarted', 'ModelCallCompleted', 'ModelCallAborted'];

/** Rows of sessions and approvals, for sweeps and lists. */
export const agentSessions: ProjectionDefinition = {
  name: 'agent-sessions',
  service: 'agent',
  categories: ['session'],
  unusedTypes: [...UNUSED_TYPES, ...MODEL_CALLS],
  tables: [
    { name: 'agent_sessions' },
    {
      name: 'agent_approvals',
      // The hourly sweep deletes closed approvals of an archived session.
      ignoredRows: `closed_at is not null and exists (select from public.archived_streams a
        join public.log_archives l using (archive_id)
        where a.workspace = agent_approvals.workspace and a.stream_id = 'session-' || session_id
          and l.rows_deleted_at is not null and first_position <= l.cut_position)`,
    },
  ],
  handle: async (client, events) => {
    await projectAgentSessions(client, events);
    await projectApprovals(client, events);
  },
};

/** Rows of agents: their facts, open turns, changes of state, and calls whose usage comes later. */
export const agentAgents: ProjectionDefinition = {
  name: 'agent-agents',
  service: 'agent',
  categories: ['agent', 'session'],
  unusedTypes: UNUSED_TYPES,
  tables: [
    { name: 'agent_agents' },
    { name: 'agent_activity' },
    { name: 'agent_session_agents' },
    {
      name: 'agent_state_changes',
      ignoredRows: `at < now() - interval '${COMPARED_DAYS} days'`,
      positionColumn: 'position',
    },
    // The sweep of vendors' figures deletes those that it asks for no more.
    {
      name: 'agent_generations',
      ignoredRows: `at < now() - interval '${ASKED_FOR}'`,
      positionColumn: 'position',
    },
  ],
  handle: async (client, events) => {
    await projectAgents(client, events);
    await projectGenerations(client, events);
  },
};

export const agentProjections = [agentSessions, agentRuns, agentTasks, agentAgents, agentChannels] as const;

/** Creates the reads of the past of all projections. Signs of life of processes have no past. */
export const createPastReads = (pool: pg.Pool): PastReads =>
  new PastReads({ pool, definitions: agentProjections, emptyTables: ['agent_heartbeats'] });
