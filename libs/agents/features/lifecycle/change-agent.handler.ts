import { Controller, Inject } from '@nestjs/common';
import { CLOCK, IDS } from '@antiphon/service-host';
import { changeAgent, OVERRIDABLE } from '@antiphon/contracts/agent';
import type { AgentChanges, AgentOverrides, AgentView } from '@antiphon/contracts/agent';
import { canonicalJson } from '@antiphon/event-store';
import type { EventStore } from '@antiphon/event-store';
import { forbidden, isoTime, notFound, rejected } from '@antiphon/kernel';
import type { Clock, Ids, JsonObject } from '@antiphon/kernel';
import { HandleRequest } from '@antiphon/messaging';
import type { z } from 'zod';
import { agentDecider } from '@antiphon/agents-domain';
import type { AgentRecord } from '@antiphon/agents-domain';
import { AGENT_STORE } from '../agents.tokens.js';
import { AgentDirectory } from './agent-directory.js';
import { actorName, requireRights } from './agent-rights.js';
import { createAgentStreams } from './agent-streams.js';
import type { AgentStreams } from './agent-streams.js';
import { ConfiguredAgents } from './configured-agents.js';
import { requireProvider } from './model-choice.js';
import { ReadAgents } from './read-agents.handler.js';

type ChangeAgentRequest = z.output<typeof changeAgent.request>;

const isSame = (a: AgentOverrides, b: AgentOverrides): boolean =>
  canonicalJson(a as JsonObject) === canonicalJson(b as JsonObject);

/** Returns the fields that are set at run time after a change. Null resets a field. */
const overridesAfter = (before: AgentOverrides, changes: AgentChanges): AgentOverrides => {
  const fields = OVERRIDABLE.flatMap((name) => {
    const changed = changes[name];
    const value = changed === undefined ? before[name] : changed;
    return value === undefined || value === null ? [] : [[name, value] as const];
  });
  return Object.fromEntries(fields);
};

/** Handles `cmd.agent.agent.change`: changes an agent for its next model call, without a restart. */
@Controller()
export class ChangeAgent {
  private readonly streams: AgentStreams;

  constructor(
    @Inject(ReadAgents) private readonly reads: ReadAgents,
    @Inject(AgentDirectory) private readonly agents: AgentDirectory,
    @Inject(ConfiguredAgents) private readonly configuredAgents: ConfiguredAgents,
    @Inject(AGENT_STORE) store: EventStore,
    @Inject(CLOCK) private readonly clock: Clock,
    @Inject(IDS) ids: Ids,
  ) {
    this.streams = createAgentStreams(store, ids);
  }

  @HandleRequest(changeAgent)
  async handle(request: ChangeAgentRequest): Promise<{ agent: AgentView }> {
    const { workspace, agentId, actor, changes, reason = null } = request;
    await this.configuredAgents.record(workspace);
    await requireRights(this.agents, workspace, actor, agentId);
    if (actor.agentId !== null || actor.role === 'member')
      throw forbidden('AGENT.NOT_ALLOWED', 'the definition of an agent is changed with a key of an operator');
    const { isAppended } = await this.streams.commit(workspace, agentId, async ({ state }) => {
      if (state.status === 'none') throw notFound('AGENT.NOT_FOUND', `there is no agent "${agentId}"`);
      const overrides = overridesAfter(state.overrides ?? {}, changes);
      const common = { agentId, actor: actorName(actor), reason, now: isoTime(this.clock) };
      const events = agentDecider.decide({ ...common, type: 'SetOverrides', data: { overrides } }, state);
      await this.requireModel(request, state, events.reduce(agentDecider.evolve, state));
      return { events: isSame(overrides, state.overrides ?? {}) ? [] : events };
    });
    if (isAppended) await this.agents.announce({ workspace, agentIds: [agentId] });
    return { agent: await this.reads.readView(workspace, agentId) };
  }

  /** A model belongs to its provider, so that another provider needs another model. */
  private async requireModel(
    { workspace, changes }: ChangeAgentRequest,
    before: AgentRecord,
    after: AgentRecord,
  ): Promise<void> {
    const provider = after.definition?.provider ?? '';
    if (provider === before.definition?.provider) return;
    await requireProvider(this.agents, workspace, provider);
    if (changes.model === undefined)
      throw rejected('SESSION.NO_MODEL', `say which model of provider "${provider}"`);
  }
}
