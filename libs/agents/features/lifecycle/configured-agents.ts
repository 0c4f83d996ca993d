import type { Cause } from '@antiphon/contracts/causes';
import { DEFAULT_TREE_LIMITS } from '@antiphon/contracts/agent';
import type { AgentDefinition, AgentEvent } from '@antiphon/contracts/agent';
import { agentDecider, agentTreeDecider } from '@antiphon/agents-domain';
import type { AgentCommand, AgentRecord } from '@antiphon/agents-domain';
import { workspaceConfig } from '@antiphon/config';
import type { AgentConfig, AntiphonConfig } from '@antiphon/config';
import { canonicalJson, isVersionConflict } from '@antiphon/event-store';
import type { EventStore } from '@antiphon/event-store';
import type { RequestClient } from '@antiphon/messaging';
import { isoTime } from '@antiphon/kernel';
import type { Clock, Ids, JsonObject } from '@antiphon/kernel';
import { setAgentBudget } from './agent-budget.js';
import type { AgentDirectory } from './agent-directory.js';
import { createAgentStreams } from './agent-streams.js';
import type { AgentStreams } from './agent-streams.js';
import type { AgentTrees } from './agent-trees.js';
import { configuredDefinition } from './agent-view.js';

export interface ConfiguredAgentsDeps {
  readonly config: AntiphonConfig;
  readonly store: Pick<EventStore, 'append' | 'readStream'>;
  readonly agents: AgentDirectory;
  readonly trees: AgentTrees;
  readonly requests: RequestClient;
  readonly clock: Clock;
  readonly ids: Ids;
}

const ACTOR = 'configuration';

const isSame = (a: object, b: object): boolean =>
  canonicalJson(a as JsonObject) === canonicalJson(b as JsonObject);

/**
 * Records the agents of the configuration as facts: spawned, redefined, paused when they are
 * removed, and resumed when they are back. Several processes may do so at once.
 */
export class ConfiguredAgents {
  private readonly recorded = new Map<string, Promise<void>>();

  private readonly streams: AgentStreams;

  constructor(private readonly deps: ConfiguredAgentsDeps) {
    this.streams = createAgentStreams(deps.store, deps.ids);
  }

  /** Records the agents of a workspace, once in this process. */
  record(workspace: string): Promise<void> {
    const known = this.recorded.get(workspace);
    if (known) return known;
    const recording = this.recordAll(workspace).catch((error: unknown) => {
      this.recorded.delete(workspace);
      throw error;
    });
    this.recorded.set(workspace, recording);
    return recording;
  }

  /** Pauses agents of the configuration's past that it no longer names. */
  async pauseRemoved(workspace: string, agentIds: readonly string[]): Promise<void> {
    const { agents } = workspaceConfig(this.deps.config, workspace);
    for (const agentId of agentIds.filter((id) => !agents.some((agent) => agent.id === id)))
      await this.change(workspace, agentId, ({ status }) =>
        status === 'ready' ? [this.command(agentId, 'Pause', { kind: 'agent_not_configured' })] : [],
      );
  }

  private async recordAll(workspace: string): Promise<void> {
    // One after another: lists show agents in the order of the configuration.
    for (const agent of workspaceConfig(this.deps.config, workspace).agents)
      await this.recordOne(workspace, agent);
  }

  private async recordOne(workspace: string, agent: AgentConfig): Promise<void> {
    const definition = configuredDefinition(agent);
    const { record, version } = await this.deps.agents.readFacts(workspace, agent.id);
    await this.setBudget(workspace, agent.id, record, definition.budget);
    if (version === 0) return this.spawn(workspace, agent);
    await this.change(workspace, agent.id, (record) => {
      const redefine: AgentCommand = {
        ...this.common(agent.id, null),
        type: 'Redefine',
        data: { definition },
      };
      const isBack = record.status === 'paused' && record.actor === ACTOR;
      const own = record.own ?? record.definition;
      const isRecorded = record.status !== 'terminated' && own !== null;
      return [
        ...(isRecorded && !isSame(own, definition) ? [redefine] : []),
        ...(isBack ? [this.command(agent.id, 'Resume', { kind: 'agent_configured_again' })] : []),
      ];
    });
  }

  /** Metering knows a changed limit before the facts have it, so that a crash repeats the request. */
  private async setBudget(
    workspace: string,
    agentId: string,
    { status, definition }: AgentRecord,
    budget: AgentDefinition['budget'],
  ): Promise<void> {
    const isSet = isSame({ budget: definition?.budget ?? null }, { budget });
    if (isSet || status === 'terminated') return;
    await setAgentBudget(this.deps.requests, { workspace, agentId, budget, actor: ACTOR });
  }

  private async spawn(workspace: string, agent: AgentConfig): Promise<void> {
    const { agents, trees, clock } = this.deps;
    const { id } = agent;
    const data = { origin: 'configuration', parentId: null, rootId: id, depth: 0 } as const;
    const commands: AgentCommand[] = [
      {
        ...this.common(id, null),
        type: 'Spawn',
        data: { ...data, definition: configuredDefinition(agent) },
      },
      this.command(id, 'MarkReady', null),
    ];
    const limits = DEFAULT_TREE_LIMITS;
    try {
      await trees.commit(workspace, id, (tree) => ({
        events: agentTreeDecider.decide(
          { type: 'Open', data: { rootId: id, limits }, now: isoTime(clock) },
          tree,
        ),
        also: [this.streams.appendOf(workspace, id, 0, decideAll(commands, agentDecider.initialState()))],
      }));
    } catch (error) {
      // Another process has recorded it.
      if (!isVersionConflict(error)) throw error;
    }
    await agents.announce({ workspace, agentIds: [id] });
  }

  private async change(
    workspace: string,
    agentId: string,
    commandsFor: (record: AgentRecord) => AgentCommand[],
  ): Promise<void> {
    const { isAppended } = await this.streams.commit(workspace, agentId, ({ state }) => ({
      events: decideAll(commandsFor(state), state),
    }));
    if (isAppended) await this.deps.agents.announce({ workspace, agentIds: [agentId] });
  }

  private common(agentId: string, cause: Cause | null) {
    const why = { reason: null, ...(cause ? { cause } : {}) };
    return { agentId, actor: ACTOR, ...why, now: isoTime(this.deps.clock) };
  }

  private command(
    agentId: string,
    type: 'MarkReady' | 'Pause' | 'Resume',
    cause: Cause | null,
  ): AgentCommand {
    return { ...this.common(agentId, cause), type, data: {} };
  }
}

/** Decides commands one after another. */
export const decideAll = (commands: readonly AgentCommand[], record: AgentRecord): AgentEvent[] => {
  let next = record;
  return commands.flatMap((command) => {
    const events = agentDecider.decide(command, next);
    next = events.reduce(agentDecider.evolve, next);
    return events;
  });
};
