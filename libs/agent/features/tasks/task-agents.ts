import { workspaceConfig } from '@antiphon/config';
import type { AntiphonConfig } from '@antiphon/config';

/** An agent as the delegation sees it. */
export interface TaskAgent {
  readonly agentId: string;
  readonly capabilities: readonly string[];
  /** False while it is paused or in error. */
  readonly takesWork: boolean;
}

/** The agents that can get tasks. */
export interface TaskAgents {
  /** Lists the living agents of a workspace. */
  list(workspace: string): Promise<readonly TaskAgent[]>;
  /** Returns whether an agent exists and lives. */
  isLiving(workspace: string, agentId: string): Promise<boolean>;
}

/** Returns the agents of the configuration. */
export const configuredAgents = (config: AntiphonConfig): TaskAgents => {
  const list = async (workspace: string): Promise<readonly TaskAgent[]> =>
    workspaceConfig(config, workspace).agents.map(({ id, capabilities }) => ({
      agentId: id,
      capabilities,
      takesWork: true,
    }));
  return {
    list,
    isLiving: async (workspace, agentId) =>
      (await list(workspace)).some((agent) => agent.agentId === agentId),
  };
};
