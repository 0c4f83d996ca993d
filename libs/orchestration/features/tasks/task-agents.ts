import type pg from 'pg';
import { workspaceConfig } from '@antiphon/config';
import type { AgentConfig, AntiphonConfig } from '@antiphon/config';
import { inWorkspace, translateDatabaseError } from '@antiphon/database';
import type { AgentReach, AgentDirectory, DirectoryAgent } from '@antiphon/agents-features';

/** An agent as the delegation sees it. */
export interface TaskAgent {
  readonly agentId: string;
  readonly capabilities: readonly string[];
  /** False while it is paused or in error. */
  readonly takesWork: boolean;
  /** Decides who may delegate to it, and to whom it may. */
  readonly reach?: AgentReach;
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

const LIVING_SQL = `select agent_id, status, coalesce(record #> '{definition,capabilities}', '[]') as capabilities,
    record #>> '{definition,base}' as base, record ->> 'rootId' as root_id,
    coalesce(record #> '{definition,tools}', '[]') as tools, record #> '{definition,contacts}' as contacts
    from agent_agents where workspace = $1 and status <> 'terminated'`;

/** A living agent of the projection `agent-agents`. */
interface AgentRow {
  readonly agent_id: string;
  readonly status: string;
  readonly capabilities: readonly string[];
  readonly base: string | null;
  readonly root_id: string | null;
  readonly tools: readonly string[];
  readonly contacts: readonly string[] | null;
}

interface KnownRows {
  readonly readAt: number;
  readonly rows: readonly AgentRow[];
}

const isAlive = (agent: DirectoryAgent | null): agent is DirectoryAgent =>
  agent !== null && agent.status !== 'terminated';

const toTaskAgent = (
  agentId: string,
  { capabilities, status }: Pick<AgentRow, 'capabilities' | 'status'>,
  reach: AgentReach,
): TaskAgent => ({ agentId, capabilities, takesWork: WORKING.has(status), reach });

const reachOf = (row: AgentRow, agents: readonly AgentConfig[]): AgentReach => {
  const { agent_id: id, base, root_id: rootId, tools, contacts } = row;
  return {
    ...agents.find((agent) => agent.id === base),
    ...{ id, base: base ?? id, rootId: rootId ?? id, tools },
    ...(contacts ? { ownContacts: contacts } : {}),
  };
};

export interface TaskAgentsDeps {
  readonly config: AntiphonConfig;
  readonly pool: pg.Pool;
  readonly directory: Pick<AgentDirectory, 'find' | 'load'>;
}

/**
 * The configured and the spawned agents. The rows list them; the directory has the newer state of
 * those that this process has in use.
 */
export class KnownAgents implements TaskAgents {
  private readonly lists = new Map<string, KnownRows>();

  constructor(private readonly deps: TaskAgentsDeps) {}

  async list(workspace: string): Promise<readonly TaskAgent[]> {
    const { config, directory } = this.deps;
    const { agents } = workspaceConfig(config, workspace);
    const configured = agents.map(({ id }) => id);
    const known = new Map<string, TaskAgent>();
    for (const row of await this.livingRows(workspace)) {
      const agent = directory.find(workspace, row.agent_id);
      if (agent === undefined) {
        const reach = reachOf(row, agents);
        known.set(row.agent_id, toTaskAgent(row.agent_id, row, reach));
      } else if (isAlive(agent)) known.set(agent.id, toTaskAgent(agent.id, agent, agent));
    }
    // The facts of a configured agent may not be recorded, or its configuration may be newer.
    for (const agent of await Promise.all(configured.map((id) => directory.load(workspace, id))))
      if (isAlive(agent)) known.set(agent.id, toTaskAgent(agent.id, agent, agent));
    return [...known.values()];
  }

  async isLiving(workspace: string, agentId: string): Promise<boolean> {
    return isAlive(await this.deps.directory.load(workspace, agentId));
  }

  private async livingRows(workspace: string): Promise<readonly AgentRow[]> {
    const known = this.lists.get(workspace);
    if (known && performance.now() - known.readAt < LIST_MS) return known.rows;
    const readAt = performance.now();
    try {
      const query = { name: 'agent_living', text: LIVING_SQL, values: [workspace] };
      const { rows } = await inWorkspace(this.deps.pool, workspace).query<AgentRow>(query);
      if (this.lists.size >= MAX_LISTS) this.lists.clear();
      this.lists.set(workspace, { readAt, rows });
      return rows;
    } catch (error) {
      throw translateDatabaseError(error);
    }
  }
}
