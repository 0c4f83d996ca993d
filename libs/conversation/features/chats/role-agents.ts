import { AgentId, AgentSpec } from '@antiphon/contracts/agent';
import type { AgentDefinition, AgentEvent } from '@antiphon/contracts/agent';
import { agentDecider } from '@antiphon/agents-domain';
import type { AgentRecord } from '@antiphon/agents-domain';
import { isVersionConflict, retryConflicts } from '@antiphon/event-store';
import type { EventStore } from '@antiphon/event-store';
import { isAppError, isoTime } from '@antiphon/kernel';
import type { Clock, Ids } from '@antiphon/kernel';
import { createAgentStreams } from '@antiphon/agents-features';
import type { AgentDirectory, AgentStreams, SpawnAgent } from '@antiphon/agents-features';
import { workspaceConfig } from '@antiphon/config';
import type { AgentConfig, AntiphonConfig } from '@antiphon/config';
import { fileTreeIdOf } from '@antiphon/agent-log';
import type { FileTrees } from '@antiphon/files-features';
import { TEXT_DEADLINE_MS } from '@antiphon/service-host/worker-pool';
import { conversationJobs } from '../text-work.js';
import type { RoleSettings } from '../text-work.js';
import { rolePath } from '../turns/role-text.js';

export interface RoleAgentsDeps {
  readonly spawner: SpawnAgent;
  readonly agents: AgentDirectory;
  readonly config: AntiphonConfig;
  readonly store: EventStore;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly files: Pick<FileTrees, 'read' | 'readBytes'>;
}

interface RoleRequest {
  readonly workspace: string;
  readonly role: string;
  readonly caller: string;
  readonly callerAgent?: string | undefined;
}

/** Maximum number of attempts: another request may change the agent first. */
const MAX_ROUNDS = 3;

const isTaken = (error: unknown): boolean => isAppError(error) && error.code === 'AGENT.EXISTS';

/**
 * Agents of roles that only a file defines: `system/agents/<role>.md`. Such a role has an agent
 * with its name, which starts from the default agent and what the front matter says.
 */
export class RoleAgents {
  private readonly streams: AgentStreams;

  constructor(private readonly deps: RoleAgentsDeps) {
    this.streams = createAgentStreams(deps.store, deps.ids);
  }

  /** Returns the first agent of the configuration, or the one of a role; undefined for none. */
  findConfigured(workspace: string, role?: string): AgentConfig | undefined {
    const { agents } = workspaceConfig(this.deps.config, workspace);
    if (role === undefined) return agents[0];
    return agents.find(({ id }) => id === role) ?? agents.find((known) => known.role === role);
  }

  /**
   * Returns the id of the agent of a role, which is spawned or redefined as the file says now. Null
   * if there is neither such a file nor such an agent. Throws `CHAT.ROLE_INVALID` and the errors of
   * a spawn, such as `AGENT.NOT_ALLOWED` for a tool that the base has not.
   */
  async find(request: RoleRequest): Promise<string | null> {
    const { workspace, role } = request;
    if (!AgentId.safeParse(role).success) return null;
    const { files } = await this.deps.files.read(workspace, fileTreeIdOf(workspace));
    const file = files.get(rolePath(role));
    if (!file) return (await this.deps.agents.load(workspace, role)) ? role : null;
    const bytes = await this.deps.files.readBytes(workspace, file.digest);
    const input = [role, new Uint8Array(bytes)] as const;
    const work = { name: 'parseRoleFile', input, owner: workspace, deadlineMs: TEXT_DEADLINE_MS } as const;
    const settings = await conversationJobs.run(work);
    const record = async (): Promise<void> => {
      if (await this.deps.agents.load(workspace, role)) await this.redefine(request, settings);
      else await this.spawn(request, settings);
    };
    const isStale = (error: unknown): boolean => isVersionConflict(error) || isTaken(error);
    await retryConflicts(record, { maxRounds: MAX_ROUNDS, isStale });
    return role;
  }

  private async spawn(request: RoleRequest, settings: RoleSettings): Promise<void> {
    await this.deps.spawner.handle(this.toSpawn(request, settings));
  }

  /** Appends a new definition where the file names other values than the agent has. */
  private async redefine(request: RoleRequest, settings: RoleSettings): Promise<void> {
    const { workspace, role: agentId } = request;
    const { isAppended } = await this.streams.commit(workspace, agentId, async ({ state }) => ({
      events: await this.decide(request, settings, state),
    }));
    if (isAppended) await this.deps.agents.announce({ workspace, agentIds: [agentId] });
  }

  private async decide(
    request: RoleRequest,
    settings: RoleSettings,
    record: AgentRecord,
  ): Promise<AgentEvent[]> {
    const { role: agentId, caller: actor } = request;
    const { definition: old } = record;
    if (old === null || record.status === 'terminated' || old.base === agentId) return [];
    const plan = await this.deps.spawner.plan(this.toSpawn(request, { base: old.base, ...settings }));
    const { name, provider, model, tools, thinking } = plan.definition;
    const definition: AgentDefinition = {
      ...old,
      ...(settings.name === undefined ? {} : { name }),
      ...(settings.tools === undefined ? {} : { tools }),
      ...(settings.thinking === undefined ? {} : { thinking }),
      ...(settings.provider === undefined && settings.model === undefined ? {} : { provider, model }),
    };
    if (JSON.stringify(definition) === JSON.stringify(old)) return [];
    const now = isoTime(this.deps.clock);
    const common = { agentId, actor, reason: rolePath(agentId), now };
    return agentDecider.decide({ ...common, type: 'Redefine', data: { definition } }, record);
  }

  private toSpawn({ workspace, role, caller, callerAgent }: RoleRequest, settings: RoleSettings) {
    const { description: _, name = role, ...choice } = settings;
    const spec = AgentSpec.parse({ ...choice, id: role, role, name });
    // The file is a text of members: the agent gets no tool that a member may not give it.
    const actor = { caller, role: 'member', agentId: callerAgent ?? null } as const;
    return { workspace, spec, actor, anyModel: true };
  }
}
