import { causedError } from '@antiphon/contracts/causes';
import { Controller, Inject } from '@nestjs/common';
import { CLOCK, CONFIG, IDS, REQUESTS } from '@antiphon/service-host';
import { AGENT_STORE } from '../agents.tokens.js';
import { AgentTrees } from './agent-trees.js';
import { AgentDirectory } from './agent-directory.js';
import { DEFAULT_TREE_LIMITS, spawnAgent } from '@antiphon/contracts/agent';
import type { AgentEvent, AgentView } from '@antiphon/contracts/agent';
import type { z } from 'zod';
import { agentDecider, agentTreeDecider } from '@antiphon/agents-domain';
import type { AgentCommand, AgentTree } from '@antiphon/agents-domain';
import type { AntiphonConfig } from '@antiphon/config';
import { claimOf, isVersionConflict } from '@antiphon/event-store';
import type { EventStore, IdempotencyClaim } from '@antiphon/event-store';
import { conflict, failpoint, isAppError, isoTime } from '@antiphon/kernel';
import type { Clock, Ids } from '@antiphon/kernel';
import { HandleRequest } from '@antiphon/messaging';
import type { RequestClient } from '@antiphon/messaging';
import { setAgentBudget } from './agent-budget.js';
import type { AgentFacts } from './directory-agent.js';
import { actorName } from './agent-rights.js';
import { createAgentStreams } from './agent-streams.js';
import type { AgentStreams } from './agent-streams.js';
import type { TreeDecision } from './agent-trees.js';
import { NO_ACTIVITY, agentView, queuePlace } from './agent-view.js';
import { decideAll, ConfiguredAgents } from './configured-agents.js';
import { planSpawn } from './spawn-plan.js';
import type { SpawnAgentRequest, SpawnPlan } from './spawn-plan.js';

export type { SpawnAgentRequest } from './spawn-plan.js';
export type SpawnAgentReply = z.output<typeof spawnAgent.reply>;

/** Handles `cmd.agent.agent.spawn`: one append with the agent and its place in the tree. */
@Controller()
export class SpawnAgent {
  private readonly streams: AgentStreams;

  constructor(
    @Inject(AgentDirectory) private readonly agents: AgentDirectory,
    @Inject(AgentTrees) private readonly trees: AgentTrees,
    @Inject(ConfiguredAgents) private readonly configuredAgents: ConfiguredAgents,
    @Inject(AGENT_STORE) store: EventStore,
    @Inject(REQUESTS) private readonly requests: RequestClient,
    @Inject(CONFIG) private readonly config: AntiphonConfig,
    @Inject(CLOCK) private readonly clock: Clock,
    @Inject(IDS) private readonly ids: Ids,
  ) {
    this.streams = createAgentStreams(store, ids);
  }

  @HandleRequest(spawnAgent)
  async handle(request: SpawnAgentRequest): Promise<SpawnAgentReply> {
    const { workspace } = request;
    await this.configuredAgents.record(workspace);
    const plan = await this.plan(request);
    const id = await this.spawn(request, plan);
    return { agent: await this.view(workspace, id) };
  }

  /** Returns the request with all that it leaves open filled in. */
  plan(request: SpawnAgentRequest): Promise<SpawnPlan> {
    const { config, agents, ids } = this;
    return planSpawn({ config, agents, ids }, request);
  }

  /** Appends the agent. Returns its id, or that of the agent that a repeated request created. */
  private async spawn(request: SpawnAgentRequest, plan: SpawnPlan): Promise<string> {
    const { trees, agents } = this;
    const { workspace, idempotencyKey } = request;
    const { id, rootId } = plan;
    let made: AgentFacts | null = null;
    try {
      await this.setBudget(request, plan);
      await failpoint('agent.spawn.budgeted');
      const result = await trees.commit(workspace, rootId, (tree) => {
        const { facts, ...decision } = this.decide(request, plan, tree);
        made = facts;
        return decision;
      });
      await failpoint('agent.spawn.recorded');
      const joined = result?.outcome === 'joined' ? result.response?.['agentId'] : undefined;
      if (typeof joined === 'string') return joined;
      if (made) await agents.remember(workspace, id, made);
      return id;
    } catch (error) {
      if (isAppError(error) && error.code === 'LOG.IDEMPOTENCY_CONFLICT') throw error;
      // The first request with this key may have taken the last place, or the id.
      const joined = idempotencyKey === undefined ? null : await this.findJoined(request, plan);
      if (joined !== null) return joined;
      if (!isVersionConflict(error)) throw error;
      throw causedError(conflict, 'AGENT.EXISTS', { kind: 'agent_exists', agentId: id }, { agentId: id });
    }
  }

  /** Metering knows the limit before the agent can spend. */
  private async setBudget(
    { workspace, actor }: SpawnAgentRequest,
    { id, definition }: SpawnPlan,
  ): Promise<void> {
    const { budget } = definition;
    const { requests, agents } = this;
    // The id of an agent that exists: its limit stays.
    if (budget === null || (await agents.readFacts(workspace, id)).version > 0) return;
    await setAgentBudget(requests, { workspace, agentId: id, budget, actor: actorName(actor) });
  }

  private decide(
    request: SpawnAgentRequest,
    plan: SpawnPlan,
    tree: AgentTree,
  ): TreeDecision & { readonly facts: AgentFacts } {
    const { id, rootId, parent } = plan;
    const now = isoTime(this.clock);
    const { whenFull, limits } = request.spec;
    const events = agentTreeDecider.decide(
      parent
        ? { type: 'Admit', data: { agentId: id, parentId: parent.id, whenFull }, now }
        : { type: 'Open', data: { rootId, limits: { ...DEFAULT_TREE_LIMITS, ...limits } }, now },
      tree,
    );
    // Another request with the same id is in the tree: the append of the agent would conflict.
    if (events.length === 0) throw conflict('LOG.VERSION_CONFLICT', `agent "${id}" is in the tree`);
    const isAdmitted = events.some(({ type }) => type === 'TreeMemberAdmitted');
    const spawned = this.agentEvents(request, plan, isAdmitted, now);
    const record = spawned.reduce(agentDecider.evolve, agentDecider.initialState());
    return {
      events,
      also: [this.streams.appendOf(request.workspace, id, 0, spawned)],
      idempotency: this.claimOf(request, plan),
      facts: { record, version: spawned.length },
    };
  }

  private agentEvents(
    { actor }: SpawnAgentRequest,
    { id, definition, parent, rootId, depth }: SpawnPlan,
    isAdmitted: boolean,
    now: string,
  ): AgentEvent[] {
    const common = { agentId: id, actor: actorName(actor), reason: null, now };
    const tree = { origin: 'request', parentId: parent?.id ?? null, rootId, depth } as const;
    const commands: AgentCommand[] = [{ ...common, type: 'Spawn', data: { definition, ...tree } }];
    if (isAdmitted) commands.push({ ...common, type: 'MarkReady', data: {} });
    return decideAll(commands, agentDecider.initialState());
  }

  private claimOf(
    { actor, idempotencyKey: key, spec }: SpawnAgentRequest,
    { id }: SpawnPlan,
  ): IdempotencyClaim | undefined {
    return claimOf(`${actor.caller}/agent.spawn`, key, { spec }, { agentId: id });
  }

  /**
   * Returns the agent that an earlier request with this key created; null if there was none. The
   * append joins the earlier claim, or conflicts with the agent's event stream.
   */
  private async findJoined(request: SpawnAgentRequest, plan: SpawnPlan): Promise<string | null> {
    const { agents, clock } = this;
    const { workspace } = request;
    if ((await agents.readFacts(workspace, plan.id)).version === 0) return null;
    const events = this.agentEvents(request, plan, false, isoTime(clock));
    try {
      const idempotency = this.claimOf(request, plan);
      const result = await this.streams.appendAt(workspace, plan.id, 0, events, { idempotency });
      const agentId = result.outcome === 'joined' ? result.response?.['agentId'] : undefined;
      return typeof agentId === 'string' ? agentId : null;
    } catch (error) {
      if (isVersionConflict(error)) return null;
      throw error;
    }
  }

  private async view(workspace: string, id: string): Promise<AgentView> {
    const { agents, trees } = this;
    const { record } = await agents.facts(workspace, id);
    const queued =
      record.status === 'spawning' ? queuePlace(await trees.read(workspace, record.rootId), id) : null;
    return agentView(id, record, { ...NO_ACTIVITY, queued }, false);
  }
}
