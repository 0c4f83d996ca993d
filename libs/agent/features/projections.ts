import type { ProjectionDefinition } from '@antiphon/event-store';
import { projectRuns } from './project-runs/agent-runs.projection.js';
import { projectAgentSessions } from './recover-sessions/agent-sessions.projection.js';

/** What sweeps and listings of sessions read. */
export const agentSessions: ProjectionDefinition = {
  name: 'agent-sessions',
  service: 'agent',
  categories: ['session'],
  tables: [{ name: 'agent_sessions' }],
  handle: projectAgentSessions,
};

/** What listings of workflows and runs read, and the reconciler. */
export const agentRuns: ProjectionDefinition = {
  name: 'agent-runs',
  service: 'agent',
  categories: ['run', 'workflow'],
  tables: [{ name: 'agent_workflows' }, { name: 'agent_runs' }],
  handle: projectRuns,
};

export const agentProjections = [agentSessions, agentRuns] as const;
