import { Controller, Inject } from '@nestjs/common';
import { PAST_READS } from '../agents.tokens.js';
import { AgentRows } from '../lifecycle/agent-rows.js';
import { AgentDirectory } from '../lifecycle/agent-directory.js';
import { readAgentMetrics, type AgentMetrics } from '@antiphon/contracts/agent';
import { translateDatabaseError } from '@antiphon/database';
import type { PastReads } from '@antiphon/event-store';
import { notFound } from '@antiphon/kernel';
import { HandleRequest } from '@antiphon/messaging';
import type { z } from 'zod';
import { SAMPLE_MS } from './agent-metrics.js';

type Row = Record<Exclude<keyof AgentMetrics, 'at'>, number> & { readonly sampled: Date };

/** Sums of the processes of one time; the folder is one. */
export const SAMPLE_SUMS = `sum(cpu_ms) as "cpuMs", sum(memory_bytes)::float8 as "memoryBytes",
    max(disk_bytes)::float8 as "diskBytes", sum(disk_read_bytes)::float8 as "diskReadBytes",
    sum(disk_written_bytes)::float8 as "diskWrittenBytes", sum(turns)::float8 as turns,
    sum(model_calls)::float8 as "modelCalls", sum(tool_calls)::float8 as "toolCalls",
    sum(input_tokens)::float8 as "inputTokens", sum(output_tokens)::float8 as "outputTokens"`;

/**
 * Adds up processes. As of a position, a sample counts once its 30 seconds are
 * over.
 */
const STORED_SQL = `select at, ${SAMPLE_SUMS}
  from agent_metrics where workspace = $1 and agent_id = $2
    and ($4::bigint is null or at + interval '${SAMPLE_MS} milliseconds' <= (select recorded_at from events
      where workspace = $1 and position <= $4 order by position desc limit 1))
  group by at`;
const METRICS_SQL = `${STORED_SQL.replace('select at,', 'select at as sampled,')} order by at desc limit $3`;

const SUMMED = ['cpuMs', 'diskReadBytes', 'diskWrittenBytes', 'turns', 'modelCalls', 'toolCalls'] as const;
const TOKENS = ['inputTokens', 'outputTokens'] as const;
const MOST = ['memoryBytes', 'diskBytes'] as const;
const STEPS_SQL = `select to_timestamp(floor(extract(epoch from at) / $5) * $5) as sampled,
    ${[...SUMMED, ...TOKENS].map((name) => `sum("${name}")::float8 as "${name}"`).join(', ')},
    ${MOST.map((name) => `max("${name}") as "${name}"`).join(', ')}
  from (${STORED_SQL}) stored group by 1 order by 1 desc limit $3`;

/** Handles `cmd.agent.agent.metrics`: returns the samples of an agent, newest first. */
@Controller()
export class ReadAgentMetrics {
  constructor(
    @Inject(AgentDirectory) private readonly agents: AgentDirectory,
    @Inject(AgentRows) private readonly agentRows: AgentRows,
    @Inject(PAST_READS) private readonly past: PastReads,
  ) {}

  @HandleRequest(readAgentMetrics)
  async handle({
    workspace,
    agentId,
    limit,
    step,
    at,
  }: z.output<typeof readAgentMetrics.request>): Promise<z.input<typeof readAgentMetrics.reply>> {
    const { agents, agentRows, past } = this;
    return past.readAsOf(workspace, at, async (queries, upTo) => {
      const isKnown =
        at === undefined
          ? await agents.load(workspace, agentId)
          : (await agentRows.find(workspace, [agentId], queries)).length > 0;
      if (!isKnown) throw notFound('AGENT.NOT_FOUND', `there is no agent "${agentId}"`);
      try {
        const values = [workspace, agentId, limit, at === undefined ? null : upTo];
        const { rows } =
          step * 1_000 === SAMPLE_MS
            ? await queries.query<Row>(METRICS_SQL, values)
            : await queries.query<Row>(STEPS_SQL, [...values, step]);
        return { samples: rows.map(({ sampled, ...sums }) => ({ at: sampled.toISOString(), ...sums })) };
      } catch (error) {
        throw translateDatabaseError(error);
      }
    });
  }
}
