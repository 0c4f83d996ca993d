import { Controller, Inject } from '@nestjs/common';
import type pg from 'pg';
import { readAgentMetrics, type AgentMetrics } from '@antiphon/contracts/agent';
import { inWorkspace, translateDatabaseError } from '@antiphon/database';
import { notFound } from '@antiphon/kernel';
import { HandleRequest } from '@antiphon/messaging';
import type { z } from 'zod';
import { AGENT_SERVICES } from '../agent.tokens.js';
import type { AgentDirectory } from '../agents/agent-directory.js';

export interface ReadAgentMetricsDeps {
  readonly pool: pg.Pool;
  readonly agents: Pick<AgentDirectory, 'load'>;
}

type Row = Record<Exclude<keyof AgentMetrics, 'at'>, number> & { readonly sampled: Date };

/** The folder is one, so that its size is not added up over processes. */
const METRICS_SQL = `select at as sampled, sum(cpu_ms) as "cpuMs", sum(memory_bytes)::float8 as "memoryBytes",
    max(disk_bytes)::float8 as "diskBytes", sum(disk_read_bytes)::float8 as "diskReadBytes",
    sum(disk_written_bytes)::float8 as "diskWrittenBytes", sum(turns)::float8 as turns,
    sum(model_calls)::float8 as "modelCalls", sum(tool_calls)::float8 as "toolCalls",
    sum(input_tokens)::float8 as "inputTokens", sum(output_tokens)::float8 as "outputTokens"
  from agent_metrics where workspace = $1 and agent_id = $2 group by at order by at desc limit $3`;

/** Handles `cmd.agent.agent.metrics`: returns the samples of an agent, newest first. */
@Controller()
export class ReadAgentMetrics {
  constructor(@Inject(AGENT_SERVICES) private readonly deps: ReadAgentMetricsDeps) {}

  @HandleRequest(readAgentMetrics)
  async handle({
    workspace,
    agentId,
    limit,
  }: z.output<typeof readAgentMetrics.request>): Promise<z.input<typeof readAgentMetrics.reply>> {
    if (!(await this.deps.agents.load(workspace, agentId)))
      throw notFound('AGENT.NOT_FOUND', `there is no agent "${agentId}"`);
    try {
      const values = [workspace, agentId, limit];
      const { rows } = await inWorkspace(this.deps.pool, workspace).query<Row>(METRICS_SQL, values);
      return { samples: rows.map(({ sampled, ...sums }) => ({ at: sampled.toISOString(), ...sums })) };
    } catch (error) {
      throw translateDatabaseError(error);
    }
  }
}
