import { Controller, Inject } from '@nestjs/common';
import { CONFIG, DATABASE_POOL } from '@antiphon/service-host';
import { PAST_READS } from '../agents.tokens.js';
import { SpeakingAgents } from './speaking-agents.js';
import { ConfiguredAgents } from './configured-agents.js';
import { AgentTrees } from './agent-trees.js';
import { AgentRows } from './agent-rows.js';
import { AgentDirectory } from './agent-directory.js';
import { getAgent, listAgents, movePhase, readAgentHistory } from '@antiphon/contracts/agent';
import type { AgentView } from '@antiphon/contracts/agent';
import { encodeCursor } from '@antiphon/contracts/log';
import type pg from 'pg';
import type { z } from 'zod';
import { workspaceConfig } from '@antiphon/config';
import type { AntiphonConfig } from '@antiphon/config';
import { inWorkspace } from '@antiphon/database';
import type { WorkspaceQueries } from '@antiphon/database';
import type { PastReads } from '@antiphon/event-store';
import { positionOfCursor } from '@antiphon/event-store';
import { notFound } from '@antiphon/kernel';
import { HandleRequest } from '@antiphon/messaging';
import type { AgentRow, ListFilter } from './agent-rows.js';
import { agentView, NO_ACTIVITY, queuePlace } from './agent-view.js';
import { readOpenWork } from './open-work.js';
import type { AgentActivity } from './agent-view.js';

export type ListAgentsRequest = z.input<typeof listAgents.request>;
export type ListAgentsReply = z.input<typeof listAgents.reply>;

type Filter = Omit<ListFilter, 'after' | 'offset' | 'limit'>;
const FILTERS = ['project', 'parent', 'state', 'capability', 'model', 'q'] as const;
const filterOf = (request: ListAgentsRequest): Filter =>
  Object.fromEntries(FILTERS.map((name) => [name, request[name] ?? null])) as unknown as Filter;

const activityOf = (row: AgentRow): AgentActivity => {
  const { openTurns, phase, lastSeenAt, lastTurnAt, place, limit } = row;
  const queued = place === null || limit === null ? null : { position: place, limit };
  return { isWorking: openTurns > 0, phase, lastSeenAt, lastTurnAt, queued };
};

/** Serves reads of agents: one of them from its facts, lists and histories from the projection. */
@Controller()
export class ReadAgents {
  constructor(
    @Inject(AgentDirectory) private readonly agents: AgentDirectory,
    @Inject(AgentRows) private readonly agentRows: AgentRows,
    @Inject(AgentTrees) private readonly trees: AgentTrees,
    @Inject(ConfiguredAgents) private readonly configuredAgents: ConfiguredAgents,
    @Inject(SpeakingAgents) private readonly speaking: SpeakingAgents,
    @Inject(PAST_READS) private readonly past: PastReads,
    @Inject(CONFIG) private readonly config: AntiphonConfig,
    @Inject(DATABASE_POOL) private readonly pool: pg.Pool,
  ) {}

  @HandleRequest(listAgents)
  async list(request: ListAgentsRequest): Promise<ListAgentsReply> {
    const { workspace, at } = request;
    // A read of the past changes nothing.
    if (at === undefined) await this.configuredAgents.record(workspace);
    return this.past.readAsOf(workspace, at, (queries) => this.readList(request, queries));
  }

  private async readList(request: ListAgentsRequest, queries: WorkspaceQueries): Promise<ListAgentsReply> {
    const { workspace, limit = 1_000, cursor, offset = 0, at } = request;
    const filter = filterOf(request);
    const after = positionOfCursor(cursor);
    const bounds = { after, offset, limit };
    const page = await this.agentRows.list(workspace, { ...filter, ...bounds }, queries);
    const { hasMore } = page;
    const shown = at === undefined ? await this.withSpeech(workspace, page.shown) : page.shown;
    const last = shown.at(-1);
    const isWhole =
      !hasMore && after === null && offset === 0 && Object.values(filter).every((value) => value === null);
    const missing = isWhole && at === undefined ? await this.notYetProjected(workspace, shown) : [];
    return {
      agents: [...missing, ...(await this.views(workspace, shown, queries))],
      nextCursor: hasMore && last ? encodeCursor(last.firstPosition) : null,
    };
  }

  @HandleRequest(getAgent)
  async get({
    workspace,
    agentId,
    at,
  }: z.output<typeof getAgent.request>): Promise<z.input<typeof getAgent.reply>> {
    if (at !== undefined)
      return this.past.readAsOf(workspace, at, async (queries) => ({
        agent: await this.readRow(workspace, agentId, queries),
      }));
    await this.configuredAgents.record(workspace);
    const agent = await this.readView(workspace, agentId);
    const { definition } = (await this.agents.facts(workspace, agentId)).record;
    return { agent: { ...agent, systemPrompt: definition?.systemPrompt ?? null } };
  }

  @HandleRequest(readAgentHistory)
  async history({
    workspace,
    agentId,
    limit,
    cursor,
    at,
  }: z.output<typeof readAgentHistory.request>): Promise<z.input<typeof readAgentHistory.reply>> {
    const { agentRows, configuredAgents, past } = this;
    if (at === undefined) await configuredAgents.record(workspace);
    const before = positionOfCursor(cursor);
    return past.readAsOf(workspace, at, async (queries) => {
      const changes = await agentRows.history(workspace, agentId, before, limit + 1, queries);
      // An agent without changes exists, or is unknown.
      if (changes.length === 0)
        await (at === undefined
          ? this.readView(workspace, agentId)
          : this.readRow(workspace, agentId, queries));
      const shown = changes.slice(0, limit);
      const last = shown.at(-1);
      return {
        changes: shown,
        nextCursor: changes.length > limit && last ? encodeCursor(last.eventPosition) : null,
      };
    });
  }

  /** Returns the view of one agent from the projection. Throws `AGENT.NOT_FOUND`. */
  private async readRow(workspace: string, agentId: string, queries: WorkspaceQueries): Promise<AgentView> {
    const [row] = await this.agentRows.find(workspace, [agentId], queries);
    if (!row) throw notFound('AGENT.NOT_FOUND', `there is no agent "${agentId}"`);
    const [view] = await this.views(workspace, [row], queries);
    if (!view) throw new Error('a row has a view');
    return { ...view, systemPrompt: row.record.definition?.systemPrompt ?? null };
  }

  /** Returns the view of one agent, from the newest facts. Throws `AGENT.NOT_FOUND`. */
  async readView(workspace: string, agentId: string): Promise<AgentView> {
    const { agents, agentRows, trees } = this;
    const { record } = await agents.facts(workspace, agentId);
    if (!record.definition) throw notFound('AGENT.NOT_FOUND', `there is no agent "${agentId}"`);
    const [row] = await this.withSpeech(workspace, await agentRows.find(workspace, [agentId]));
    const queued =
      record.status === 'spawning' ? queuePlace(await trees.read(workspace, record.rootId), agentId) : null;
    const known = row ? activityOf(row) : NO_ACTIVITY;
    const work = known.isWorking
      ? await readOpenWork(inWorkspace(this.pool, workspace), workspace, [agentId])
      : null;
    const activity = { ...known, queued, current: work?.get(agentId) ?? null };
    const view = agentView(agentId, record, activity, this.isDefault(workspace, agentId));
    return { ...view, ...(await agents.inputsOf(workspace, view)) };
  }

  /** Returns the views of rows, those of working agents with their open session. */
  private async views(
    workspace: string,
    rows: readonly AgentRow[],
    queries: WorkspaceQueries,
  ): Promise<AgentView[]> {
    const working = rows.filter(({ openTurns }) => openTurns > 0).map(({ agentId }) => agentId);
    const work = await readOpenWork(queries, workspace, working);
    const views = rows.map((row) => {
      const activity = { ...activityOf(row), current: work.get(row.agentId) ?? null };
      return agentView(row.agentId, row.record, activity, this.isDefault(workspace, row.agentId));
    });
    return Promise.all(
      views.map(async (view) => ({ ...view, ...(await this.agents.inputsOf(workspace, view)) })),
    );
  }

  /** Moves agents that think to `speaking` while they send the text of an answer. */
  private async withSpeech(workspace: string, rows: readonly AgentRow[]): Promise<AgentRow[]> {
    const thinking = rows.filter(({ phase }) => movePhase(phase, 'speaking') !== phase);
    const speaking = await this.speaking.find(
      workspace,
      thinking.map(({ agentId }) => agentId),
    );
    return rows.map((row) =>
      speaking.has(row.agentId) ? { ...row, phase: movePhase(row.phase, 'speaking') } : row,
    );
  }

  /** Returns agents of the configuration that are recorded, and not in the projection yet. */
  private async notYetProjected(workspace: string, rows: readonly AgentRow[]): Promise<AgentView[]> {
    const known = new Set(rows.map(({ agentId }) => agentId));
    const { agents } = workspaceConfig(this.config, workspace);
    const missing = agents.filter(({ id }) => !known.has(id));
    const facts = await Promise.all(missing.map(({ id }) => this.agents.facts(workspace, id)));
    const living = missing.filter((_, index) => {
      const status = facts[index]?.record.status;
      return status !== 'terminated' && status !== 'none';
    });
    return Promise.all(living.map(({ id }) => this.readView(workspace, id)));
  }

  private isDefault(workspace: string, agentId: string): boolean {
    return workspaceConfig(this.config, workspace).agents[0]?.id === agentId;
  }
}
