import type { AgentDirectory } from '../agents/agent-directory.js';
import { workspaceConfig } from '@antiphon/config';
import type { AntiphonConfig } from '@antiphon/config';

/** An agent as the delegation sees it. */
export interface TaskAgent {
  readonly agentId: string;
  readonly capabilities: readonly string[];
  /** False while it is paused or in error. */
  readonly takesWork: boolean;
}

/** States in which an agent gets tasks; `none` is a configured agent without facts. */
const WORKING: ReadonlySet<string> = new Set(['none', 'ready']);

/** The agents that can get tasks. */
export interface TaskAgents {
  /** Lists the living agents of a workspace. */
  list(workspace: string): Promise<readonly TaskAgent[]>;
  /** Returns whether an agent exists and lives. */
  isLiving(workspace: string, agentId: string): Promise<boolean>;
}

/** Reads the agents from the configuration and the directory. */
export const knownAgents = (config: AntiphonConfig, directory: Pick<AgentDirectory, 'load'>): TaskAgents => ({
  list: async (workspace) => {
    const { agents } = workspaceConfig(config, workspace);
    const known = await Promise.all(agents.map(({ id }) => directory.load(workspace, id)));
    return known.flatMap((agent) =>
      agent && agent.status !== 'terminated'
        ? [{ agentId: agent.id, capabilities: agent.capabilities, takesWork: WORKING.has(agent.status) }]
        : [],
    );
  },
  isLiving: async (workspace, agentId) => {
    const agent = await directory.load(workspace, agentId);
    return agent !== null && agent.status !== 'terminated';
  },
});
