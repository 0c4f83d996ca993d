import { Controller, Inject } from '@nestjs/common';
import { CLOCK, IDS } from '@antiphon/service-host';
import { AGENT_STORE } from '../agents.tokens.js';
import { ConfiguredAgents } from './configured-agents.js';
import { AgentTrees } from './agent-trees.js';
import { AgentRows } from './agent-rows.js';
import { AgentDirectory } from './agent-directory.js';
import { agentStream, controlAgent } from '@antiphon/contracts/agent';
import type { AgentEvent, AgentResult, AgentView } from '@antiphon/contracts/agent';
import type { z } from 'zod';
import { agentDecider, agentTreeDecider, subtreeOf } from '@antiphon/agents-domain';
import type { AgentCommand, AgentTree, TreeMember } from '@antiphon/agents-domain';
import { retryConflicts } from '@antiphon/event-store';
import type { EventStore, NewEvent, StreamAppend } from '@antiphon/event-store';
import { failpoint, isoTime, notFound } from '@antiphon/kernel';
import type { Clock, Ids } from '@antiphon/kernel';
import { HandleRequest } from '@antiphon/messaging';
import { agentUuidOf, toNewEvent } from '@antiphon/agent-log';
import { childEndedAppend } from './child-ended.js';
import { readResult } from './agent-result.js';
import { actorName, requireRights } from './agent-rights.js';
import { createAgentStreams } from './agent-streams.js';
import type { AgentStreams } from './agent-streams.js';
import type { TreeDecision } from './agent-trees.js';
import { ReadAgents } from './read-agents.handler.js';

export type ControlAgentRequest = z.output<typeof controlAgent.request>;

/** Maximum number of commit rounds: another process may change an agent of the subtree. */
const MAX_ROUNDS = 50;
/** Maximum number of agents of one append, which has 64 streams: ends, admissions, tree, inbox. */
const MAX_ENDS = 31;
const MAX_ENDS_OF_ROOT = 60;

/** Splits a list into parts of at most `size`. */
const splitList = <T>(list: readonly T[], size: number): T[][] =>
  Array.from({ length: Math.ceil(list.length / size) }, (_, index) =>
    list.slice(index * size, (index + 1) * size),
  );

/** Handles `cmd.agent.agent.control`: pauses, resumes and ends an agent with its descendants. */
@Controller()
export class ControlAgent {
  private readonly streams: AgentStreams;

  constructor(
    @Inject(ReadAgents) private readonly reads: ReadAgents,
    @Inject(AgentDirectory) private readonly agents: AgentDirectory,
    @Inject(AgentRows) private readonly agentRows: AgentRows,
    @Inject(AgentTrees) private readonly trees: AgentTrees,
    @Inject(ConfiguredAgents) private readonly configuredAgents: ConfiguredAgents,
    @Inject(AGENT_STORE) private readonly store: EventStore,
    @Inject(CLOCK) private readonly clock: Clock,
    @Inject(IDS) private readonly ids: Ids,
  ) {
    this.streams = createAgentStreams(store, ids);
  }

  @HandleRequest(controlAgent)
  async handle(request: ControlAgentRequest): Promise<{ agent: AgentView }> {
    const { configuredAgents, agents } = this;
    const { workspace, agentId, action, actor } = request;
    await configuredAgents.record(workspace);
    const { record } = await agents.readFacts(workspace, agentId);
    if (record.status === 'none') throw notFound('AGENT.NOT_FOUND', `there is no agent "${agentId}"`);
    await requireRights(agents, workspace, actor, agentId);
    if (action === 'terminate') await this.terminate(request, record.rootId);
    else await retryConflicts(() => this.pauseOrResume(request, record.rootId), { maxRounds: MAX_ROUNDS });
    return { agent: await this.reads.readView(workspace, agentId) };
  }

  /** Pauses or resumes the agent, and the descendants that the action reaches, in one append. */
  private async pauseOrResume(request: ControlAgentRequest, rootId: string): Promise<void> {
    const { agents, trees } = this;
    const { workspace, agentId, action } = request;
    const members = subtreeOf(await trees.read(workspace, rootId), agentId);
    const targets = [agentId, ...members.map((member) => member.agentId).filter((id) => id !== agentId)];
    const facts = await Promise.all(targets.map((id) => agents.readFacts(workspace, id)));
    const changes = targets.flatMap((id, index) => {
      const known = facts[index];
      if (!known) return [];
      const { record, version } = known;
      const isReached =
        id === agentId || (action === 'pause' ? record.status === 'ready' : record.pausedWith === agentId);
      const events = isReached ? agentDecider.decide(this.command(request, id), record) : [];
      return events.length === 0 ? [] : [{ id, version, events }];
    });
    for (const [first, ...rest] of splitList(changes, 64)) {
      const also = rest.map(({ id, version, events }) =>
        this.streams.appendOf(workspace, id, version, events),
      );
      if (first) await this.streams.appendAt(workspace, first.id, first.version, first.events, { also });
    }
    await agents.announce({ workspace, agentIds: targets });
  }

  private command({ action, agentId, actor, reason }: ControlAgentRequest, id: string): AgentCommand {
    const common = {
      agentId: id,
      actor: actorName(actor),
      reason: reason ?? null,
      now: isoTime(this.clock),
    };
    if (action === 'resume') return { ...common, type: 'Resume', data: {} };
    return { ...common, type: 'Pause', data: id === agentId ? {} : { with: agentId } };
  }

  /**
   * Ends the agent and its descendants, ancestors first, in one append for a tree of the default
   * size. The sweep ends the rest of a larger one after a crash.
   */
  private async terminate(request: ControlAgentRequest, rootId: string): Promise<void> {
    const { agents, trees } = this;
    const { workspace, agentId } = request;
    const doomed = subtreeOf(await trees.read(workspace, rootId), agentId).map((member) => member.agentId);
    const results = await this.readResults(workspace, doomed);
    for (const part of splitList(doomed, agentId === rootId ? MAX_ENDS_OF_ROOT : MAX_ENDS)) {
      // New children of the subtree may have been admitted since the read.
      const chosen = new Set(part);
      const ended: string[] = [];
      await trees.commit(workspace, rootId, (tree) => {
        ended.length = 0;
        const grown = part
          .flatMap((id) => subtreeOf(tree, id))
          .filter((member) => !doomed.includes(member.agentId));
        const leaving = [
          ...part.filter((id) => tree.members.has(id)),
          ...grown.map((member) => member.agentId),
        ];
        ended.push(...new Set(leaving));
        return this.decideEnd(request, tree, ended, results);
      });
      await failpoint('agent.end.recorded');
      await agents.announce({ workspace, agentIds: [...chosen, ...ended] });
    }
  }

  private async readResults(
    workspace: string,
    agentIds: readonly string[],
  ): Promise<ReadonlyMap<string, AgentResult | null>> {
    const rows = await this.agentRows.find(workspace, agentIds);
    const results = await Promise.all(rows.map((row) => readResult(this.store, workspace, row)));
    return new Map(rows.map((row, index) => [row.agentId, results[index] ?? null]));
  }

  private decideEnd(
    request: ControlAgentRequest,
    tree: AgentTree,
    agentIds: readonly string[],
    results: ReadonlyMap<string, AgentResult | null>,
  ): TreeDecision {
    const { ids, clock } = this;
    const { workspace, actor, reason } = request;
    const now = isoTime(clock);
    const events = agentTreeDecider.decide({ type: 'Leave', data: { agentIds }, now }, tree);
    const common = { actor: actorName(actor), reason: reason ?? null, at: now };
    const ends = agentIds.flatMap((agentId) => {
      const result = results.get(agentId) ?? null;
      const event = {
        type: 'AgentTerminated',
        schemaVersion: 1,
        data: { agentId, ...common, result },
      } as const;
      return {
        member: tree.members.get(agentId),
        result,
        event: toNewEvent(event satisfies AgentEvent, ids),
      };
    });
    const admitted = events.flatMap((event) =>
      event.type === 'TreeMemberAdmitted' ? [event.data.agentId] : [],
    );
    const ready = admitted.map((agentId) => {
      const cause = { kind: 'tree_place_free' } as const;
      const data = { agentId, actor: 'runtime', reason: null, cause, at: now };
      return this.appendTo(
        workspace,
        agentId,
        toNewEvent({ type: 'AgentReady', schemaVersion: 1, data }, ids),
      );
    });
    return {
      events,
      also: [
        ...ends.map(({ member, event }) => this.appendTo(workspace, member?.agentId ?? '', event)),
        ...ready,
        ...this.tellParents(workspace, tree, ends, now),
      ],
    };
  }

  /** Returns the message about each end whose parent lives on. */
  private tellParents(
    workspace: string,
    tree: AgentTree,
    ends: readonly { member: TreeMember | undefined; result: AgentResult | null; event: NewEvent }[],
    at: string,
  ): StreamAppend[] {
    const ended = new Set(ends.map(({ member }) => member?.agentId));
    return ends.flatMap(({ member, result, event }) => {
      const parentId = member?.parentId ?? null;
      if (!member || parentId === null || ended.has(parentId) || !tree.members.has(parentId)) return [];
      const causeId = event.eventId;
      return [childEndedAppend({ workspace, parentId, childId: member.agentId, result, causeId, at })];
    });
  }

  private appendTo(workspace: string, agentId: string, event: NewEvent): StreamAppend {
    // The tree's version orders ends and admissions. A pause or a resume between changes neither.
    return {
      streamId: agentStream(agentUuidOf(workspace, agentId)),
      expectedVersion: 'any',
      events: [event],
    };
  }
}
