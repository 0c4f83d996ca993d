import { Controller, Inject } from '@nestjs/common';
import { readAgentUsage, readSessionCosts, setBudgetLimit } from '@antiphon/contracts/metering';
import type { AgentUsage, SetBudgetLimitRequest } from '@antiphon/contracts/metering';
import { translateDatabaseError } from '@antiphon/database';
import type { PastReads } from '@antiphon/event-store';
import { HandleRequest } from '@antiphon/messaging';
import { sessionScopeKey } from '@antiphon/metering-domain';
import type { z } from 'zod';
import { AGENT_LIMITS, PAST_READS } from '../metering.tokens.js';
import type { AgentLimitBook } from './agent-limits.js';

/** Sets what an agent and its descendants may spend together. */
@Controller()
export class SetBudgetLimit {
  constructor(@Inject(AGENT_LIMITS) private readonly limits: AgentLimitBook) {}

  @HandleRequest(setBudgetLimit)
  async handle(request: SetBudgetLimitRequest): Promise<{ changed: boolean }> {
    return { changed: await this.limits.set(request) };
  }
}

/** Sums of the ledger's rows by agent. A row is read only for this request. */
const USAGE_SQL = `select reserved ->> 'agentId' as agent_id, count(*) as calls,
    coalesce(sum(charged_tokens), 0) as settled_tokens, coalesce(sum(charged_micro_usd), 0) as settled_micro_usd,
    coalesce(sum((reserved ->> 'tokens')::bigint) filter (where open_until is not null), 0) as reserved_tokens,
    coalesce(sum((reserved ->> 'microUsd')::bigint) filter (where open_until is not null), 0) as reserved_micro_usd
  from budget_reservations
  where workspace = $1 and ($2::text is null or reserved ->> 'agentId' = $2)
    and ($3::text is null or coalesce(reserved -> 'agents' ->> -1, reserved ->> 'agentId') = $3)
  group by 1 order by settled_micro_usd desc, settled_tokens desc, agent_id`;

/** Maximum number of agents of a reply. The total counts all of them. */
const MAX_AGENTS = 1_000;

interface UsageRow extends Readonly<Record<string, string>> {
  readonly agent_id: string;
}

const toUsage = (row: UsageRow): AgentUsage => ({
  agentId: row.agent_id,
  calls: Number(row['calls']),
  settledTokens: Number(row['settled_tokens']),
  settledMicroUsd: Number(row['settled_micro_usd']),
  reservedTokens: Number(row['reserved_tokens']),
  reservedMicroUsd: Number(row['reserved_micro_usd']),
});

type Total = Omit<AgentUsage, 'agentId'>;

const addUsage = (sum: Total, one: Total): Total => ({
  calls: sum.calls + one.calls,
  settledTokens: sum.settledTokens + one.settledTokens,
  settledMicroUsd: sum.settledMicroUsd + one.settledMicroUsd,
  reservedTokens: sum.reservedTokens + one.reservedTokens,
  reservedMicroUsd: sum.reservedMicroUsd + one.reservedMicroUsd,
});

const NOTHING: Total = {
  calls: 0,
  settledTokens: 0,
  settledMicroUsd: 0,
  reservedTokens: 0,
  reservedMicroUsd: 0,
};

export interface AgentUsageQuery {
  readonly workspace: string;
  readonly agentId?: string | undefined;
  /** Root of a tree. */
  readonly rootId?: string | undefined;
  readonly at?: number | undefined;
}

const failTranslated = (error: unknown): never => {
  throw translateDatabaseError(error);
};

/** Returns the cost of the agents, the most expensive first, from the same rows as the balances. */
@Controller()
export class ReadAgentUsage {
  constructor(@Inject(PAST_READS) private readonly past: PastReads) {}

  @HandleRequest(readAgentUsage)
  handle(query: AgentUsageQuery): Promise<z.input<typeof readAgentUsage.reply>> {
    const { workspace, agentId = null, rootId = null, at } = query;
    const values = [workspace, agentId, rootId];
    return this.past.readAsOf(workspace, at, async (queries) => {
      const statement = { name: 'budget_agent_usage', text: USAGE_SQL, values };
      const { rows } = await queries.query<UsageRow>(statement).catch(failTranslated);
      const usage = rows.map(toUsage);
      return { agents: usage.slice(0, MAX_AGENTS), total: usage.reduce<Total>(addUsage, NOTHING) };
    });
  }
}

const COSTS_SQL = `select scope_key, settled_tokens, settled_micro_usd from budget_balances
  where workspace = $1 and scope_key = any ($2)`;

interface CostRow {
  readonly scope_key: string;
  readonly settled_tokens: string;
  readonly settled_micro_usd: string;
}

/** Returns what sessions have cost, from their balances. */
@Controller()
export class ReadSessionCosts {
  constructor(@Inject(PAST_READS) private readonly past: PastReads) {}

  @HandleRequest(readSessionCosts)
  handle(query: z.output<typeof readSessionCosts.request>): Promise<z.input<typeof readSessionCosts.reply>> {
    const { workspace, sessionIds, at } = query;
    const ids = new Map(sessionIds.map((id) => [sessionScopeKey(id.toLowerCase()), id]));
    return this.past.readAsOf(workspace, at, async (queries) => {
      const values = [workspace, [...ids.keys()]];
      const { rows } = await queries.query<CostRow>(COSTS_SQL, values).catch(failTranslated);
      return {
        sessions: rows.map((row) => ({
          sessionId: ids.get(row.scope_key) ?? '',
          tokens: Number(row.settled_tokens),
          microUsd: Number(row.settled_micro_usd),
        })),
      };
    });
  }
}
