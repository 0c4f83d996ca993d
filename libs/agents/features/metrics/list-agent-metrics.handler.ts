import { Controller, Inject } from '@nestjs/common';
import { listAgentMetrics, type AgentMetrics } from '@antiphon/contracts/agent';
import { encodeCursor } from '@antiphon/contracts/log';
import { translateDatabaseError, type WorkspaceQueries } from '@antiphon/database';
import { positionOfCursor, type PastReads } from '@antiphon/event-store';
import { HandleRequest } from '@antiphon/messaging';
import { CLOCK } from '@antiphon/service-host';
import { isoTime, type Clock } from '@antiphon/kernel';
import type pg from 'pg';
import type { z } from 'zod';
import { PAST_READS } from '../agents.tokens.js';
import { SAMPLE_MS } from './agent-metrics.js';
import { SAMPLE_SUMS } from './read-agent-metrics.handler.js';

type Request = z.output<typeof listAgentMetrics.request>;
type Reply = z.input<typeof listAgentMetrics.reply>;
type Recent = Reply['agents'][number]['recent'];

type Latest = Record<Exclude<keyof AgentMetrics, 'at'>, number> & {
  readonly agent_id: string;
  readonly first_position: string;
  readonly sampled: Date | null;
};

/** A page of agents, each with the sums of its newest 30 seconds up to `$5`. */
const LATEST_SQL = `select a.agent_id, a.first_position, m.*
  from agent_agents a
  left join lateral (select at as sampled, ${SAMPLE_SUMS} from agent_metrics
    where workspace = a.workspace and agent_id = a.agent_id and ($5::timestamptz is null or at <= $5)
    group by at order by at desc limit 1) m on true
  where a.workspace = $1 and ($2::bigint is null or a.first_position > $2)
    and case when $4::text[] is null then a.status <> 'terminated' else a.agent_id = any ($4) end
    and ($6::timestamptz is null or m.sampled >= $6)
  order by a.first_position limit $3`;
const RECENT_SQL = `select agent_id, at, sum(cpu_ms) as "cpuMs", sum(memory_bytes)::float8 as "memoryBytes",
    max(disk_bytes)::float8 as "diskBytes"
  from agent_metrics where workspace = $1 and agent_id = any ($2::text[]) and at > $3 and at <= $4
  group by agent_id, at order by agent_id, at`;
/** Time of the newest event up to a position. */
const TIME_SQL = `select recorded_at from events where workspace = $1 and position <= $2
  order by position desc limit 1`;

/** Handles `cmd.agent.agent.list-metrics`: returns the newest sample of each agent. */
@Controller()
export class ListAgentMetrics {
  constructor(
    @Inject(PAST_READS) private readonly past: PastReads,
    @Inject(CLOCK) private readonly clock: Clock,
  ) {}

  @HandleRequest(listAgentMetrics)
  async handle(request: Request): Promise<Reply> {
    const { workspace, at } = request;
    return this.past.readAsOf(workspace, at, async (queries, upTo) => {
      try {
        return await this.read(request, queries, at === undefined ? null : upTo);
      } catch (error) {
        throw translateDatabaseError(error);
      }
    });
  }

  private async read(request: Request, queries: WorkspaceQueries, upTo: number | null): Promise<Reply> {
    const { workspace, agentIds = null, minutes, since = null, limit, cursor } = request;
    const now = upTo === null ? isoTime(this.clock) : await timeOf(queries, workspace, upTo);
    // As of a position, a sample counts once its 30 seconds are over.
    const newest = upTo === null ? null : new Date(Date.parse(now) - SAMPLE_MS).toISOString();
    const values = [workspace, positionOfCursor(cursor), limit + 1, agentIds, newest, since];
    const latest = { name: 'agent_metrics_latest', text: LATEST_SQL, values };
    const { rows } = await queries.query<Latest>(latest);
    const shown = rows.slice(0, limit);
    const ids = agentIds === null || minutes === 0 ? [] : shown.map(({ agent_id: id }) => id);
    const from = new Date(Date.parse(now) - minutes * 60_000).toISOString();
    const recent = await readRecent(queries, [workspace, ids, from, newest ?? now]);
    const last = shown.at(-1);
    return {
      agents: shown.map(({ agent_id: agentId, first_position: _position, sampled, ...sums }) => ({
        agentId,
        latest: sampled === null ? null : { at: sampled.toISOString(), ...sums },
        recent: recent.get(agentId) ?? [],
      })),
      day: now.slice(0, 10),
      nextCursor: rows.length > limit && last ? encodeCursor(Number(last.first_position)) : null,
    };
  }
}

const timeOf = async (queries: WorkspaceQueries, workspace: string, upTo: number): Promise<string> => {
  const { rows } = await queries.query<{ recorded_at: Date }>(TIME_SQL, [workspace, upTo]);
  return (rows[0]?.recorded_at ?? new Date(0)).toISOString();
};

type RecentValues = readonly [workspace: string, ids: readonly string[], from: string, to: string];

const readRecent = async (queries: WorkspaceQueries, values: RecentValues): Promise<Map<string, Recent>> => {
  const found = new Map<string, Recent>();
  if (values[1].length === 0) return found;
  type Row = Omit<Recent[number], 'at'> & { readonly agent_id: string; readonly at: Date };
  const query = { name: 'agent_metrics_recent', text: RECENT_SQL, values: [...values] };
  for (const { agent_id: id, at, ...load } of (await queries.query<Row & pg.QueryResultRow>(query)).rows) {
    const samples = found.get(id) ?? [];
    found.set(id, samples);
    samples.push({ at: at.toISOString(), ...load });
  }
  return found;
};
