import { Controller, Inject } from '@nestjs/common';
import type pg from 'pg';
import { listAgents } from '@antiphon/contracts/agent';
import type { AgentView } from '@antiphon/contracts/agent';
import type { z } from 'zod';
import { workspaceConfig, type AntiphonConfig } from '@antiphon/config';
import { inWorkspace, translateDatabaseError } from '@antiphon/database';
import { HandleRequest } from '@antiphon/messaging';
import { AGENT_SERVICES } from '../agent.tokens.js';

export type ListAgentsReply = z.input<typeof listAgents.reply>;

export interface ListAgentsDeps {
  readonly config: AntiphonConfig;
  readonly pool: pg.Pool;
}

const WORKING_SQL = `select distinct agent_id from agent_sessions where workspace = $1 and open_turns > 0`;

/**
 * Handles `cmd.agent.agent.list`: lists the configured agents, and whether any of their turns is
 * open.
 */
@Controller()
export class ListAgents {
  private readonly startedAt = new Date().toISOString();

  constructor(@Inject(AGENT_SERVICES) private readonly deps: ListAgentsDeps) {}

  @HandleRequest(listAgents)
  async handle({
    workspace,
  }: Pick<z.output<typeof listAgents.request>, 'workspace'>): Promise<ListAgentsReply> {
    const working = await this.workingAgents(workspace);
    const agents = workspaceConfig(this.deps.config, workspace).agents.map(
      ({ id, name, role, provider, model, tools, capabilities, position }, index): AgentView => ({
        id,
        name,
        role,
        provider,
        model,
        tools: [...tools],
        capabilities: [...capabilities],
        position,
        project: null,
        state: working.has(id) ? 'working' : 'idle',
        phase: null,
        reason: null,
        origin: 'configuration',
        base: id,
        parentId: null,
        rootId: id,
        depth: 0,
        queued: null,
        budget: null,
        spawnedAt: this.startedAt,
        spawnedBy: 'configuration',
        lastSeenAt: null,
        result: null,
        isDefault: index === 0,
      }),
    );
    return { agents, nextCursor: null };
  }

  private async workingAgents(workspace: string): Promise<Set<string>> {
    try {
      const query = { name: 'agent_working', text: WORKING_SQL, values: [workspace] };
      const { rows } = await inWorkspace(this.deps.pool, workspace).query<{ agent_id: string }>(query);
      return new Set(rows.map(({ agent_id: id }) => id));
    } catch (error) {
      throw translateDatabaseError(error);
    }
  }
}
