import type pg from 'pg';
import { workspaceConfig } from '@antiphon/config';
import type { AntiphonConfig } from '@antiphon/config';
import { inWorkspace, translateDatabaseError } from '@antiphon/database';
import type { AgentDirectory } from '../agents/agent-directory.js';

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

/** Time for which the list of a workspace's agents is used again, ms: a new agent waits for it. */
const LIST_MS = 500;
/** Maximum number of workspaces whose lists are kept. */
const MAX_LISTS = 1_000;

// The first event of each agent; '.' is the character after '-'.
const SPAWNED_SQL = `select data ->> 'agentId' as agent_id from events
  where workspace = $1 and stream_id >= 'agent-' and stream_id < 'agent.' and stream_version = 1
    and type = 'AgentSpawned'`;

interface KnownIds {
  readonly readAt: number;
  readonly ids: readonly string[];
}

export interface TaskAgentsDeps {
  readonly config: AntiphonConfig;
  readonly pool: pg.Pool;
  readonly directory: Pick<AgentDirectory, 'load'>;
}

/** The configured and the spawned agents. Their state comes from the directory. */
export class KnownAgents implements TaskAgents {
  private readonly lists = new Map<string, KnownIds>();

  constructor(private readonly deps: TaskAgentsDeps) {}

  async list(workspace: string): Promise<readonly TaskAgent[]> {
    const { config, directory } = this.deps;
    const configured = workspaceConfig(config, workspace).agents.map(({ id }) => id);
    const ids = [...new Set([...configured, ...(await this.spawnedIds(workspace))])];
    const agents = await Promise.all(ids.map((id) => directory.load(workspace, id)));
    return agents.flatMap((agent) =>
      agent && agent.status !== 'terminated'
        ? [{ agentId: agent.id, capabilities: agent.capabilities, takesWork: WORKING.has(agent.status) }]
        : [],
    );
  }

  async isLiving(workspace: string, agentId: string): Promise<boolean> {
    const agent = await this.deps.directory.load(workspace, agentId);
    return agent !== null && agent.status !== 'terminated';
  }

  private async spawnedIds(workspace: string): Promise<readonly string[]> {
    const known = this.lists.get(workspace);
    if (known && performance.now() - known.readAt < LIST_MS) return known.ids;
    const readAt = performance.now();
    try {
      const query = { name: 'agent_spawned_ids', text: SPAWNED_SQL, values: [workspace] };
      const { rows } = await inWorkspace(this.deps.pool, workspace).query<{ agent_id: string }>(query);
      const ids = rows.map(({ agent_id: id }) => id);
      if (this.lists.size >= MAX_LISTS) this.lists.clear();
      this.lists.set(workspace, { readAt, ids });
      return ids;
    } catch (error) {
      throw translateDatabaseError(error);
    }
  }
}
