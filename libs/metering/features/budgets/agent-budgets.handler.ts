import { Controller, Inject } from '@nestjs/common';
import { readAgentUsage, readSessionCosts, setBudgetLimit } from '@antiphon/contracts/metering';
import type {
  AgentUsage,
  SetBudgetLimitRequest,
  UsageGroup,
  UsageOfGroup,
} from '@antiphon/contracts/metering';
import { translateDatabaseError } from '@antiphon/database';
import type { PastReads } from '@antiphon/event-store';
import { HandleRequest } from '@antiphon/messaging';
import { sessionScopeKey } from '@antiphon/metering-domain';
import type { z } from 'zod';
import { BUDGET_LIMIT_STORE, PAST_READS, USAGE_PROJECTION } from '../metering.tokens.js';
import type { UsageProjection } from './usage-projection.js';
import type { BudgetLimitStore } from './budget-limit-store.js';

/** Sets what an agent and its descendants may spend together, or a session, day or month. */
@Controller()
export class SetBudgetLimit {
  constructor(@Inject(BUDGET_LIMIT_STORE) private readonly limits: BudgetLimitStore) {}

  @HandleRequest(setBudgetLimit)
  async handle(request: SetBudgetLimitRequest): Promise<{ changed: boolean }> {
    return { changed: await this.limits.set(request) };
  }
}

const BY_COST = '"settledMicroUsd" desc, "settledTokens" desc, name';
const GROUPS = {
  agent: { by: 'agent_id', order: BY_COST },
  model: { by: 'model', order: BY_COST },
  key: { by: 'caller', order: BY_COST },
  day: { by: 'day', order: 'name desc' },
} as const satisfies Record<UsageGroup, { by: string; order: string }>;

/** Columns of the sums, by the field of the reply. */
const SUMS = {
  calls: 'calls',
  settledTokens: 'charged_tokens',
  settledMicroUsd: 'charged_micro_usd',
  reservedTokens: 'reserved_tokens',
  reservedMicroUsd: 'reserved_micro_usd',
  inputTokens: 'input_tokens',
  outputTokens: 'output_tokens',
  cacheReadTokens: 'cache_read_tokens',
  cacheWriteTokens: 'cache_write_tokens',
  estimatedTokens: 'estimated_tokens',
  estimatedMicroUsd: 'estimated_micro_usd',
} as const;
type Field = keyof typeof SUMS;
const FIELDS = Object.keys(SUMS) as Field[];

/** Sums of the rows of an agent, model, key and day. Their number does not grow with the calls. */
const usageSql = (group: UsageGroup): string => `select ${GROUPS[group].by} as name,
    ${FIELDS.map((field) => `sum(${SUMS[field]}) as "${field}"`).join(', ')}
  from budget_usage
  where workspace = $1 and ($2::text is null or agent_id = $2) and ($3::text is null or root_id = $3)
    and ($4::text is null or day = $4)
  group by 1 order by ${GROUPS[group].order}`;

/** Maximum number of rows of a reply. The total counts all of them. */
const MAX_ROWS = 1_000;

type UsageRow = Readonly<Record<Field | 'name', string>>;
type Total = Omit<AgentUsage, 'agentId'>;

const toUsage = (row: UsageRow): UsageOfGroup => ({
  ...(Object.fromEntries(FIELDS.map((field) => [field, Number(row[field])])) as Total),
  name: row.name,
});

const addUsage = (sum: Total, one: Total): Total =>
  Object.fromEntries(FIELDS.map((field) => [field, (sum[field] ?? 0) + (one[field] ?? 0)])) as Total;

const NOTHING = Object.fromEntries(FIELDS.map((field) => [field, 0])) as Total;

export interface AgentUsageQuery {
  readonly workspace: string;
  readonly agentId?: string | undefined;
  /** Root of a tree. */
  readonly rootId?: string | undefined;
  readonly by?: UsageGroup | undefined;
  readonly day?: string | undefined;
  readonly at?: number | undefined;
}

const failTranslated = (error: unknown): never => {
  throw translateDatabaseError(error);
};

/** Time that a read waits for the projection to reach the head of the log, ms. */
const FOLLOW_MS = 2_000;

/** Returns the cost of agents, models, keys or days, from the projection of usage. */
@Controller()
export class ReadAgentUsage {
  constructor(
    @Inject(PAST_READS) private readonly past: PastReads,
    @Inject(USAGE_PROJECTION) private readonly usage: UsageProjection,
  ) {}

  @HandleRequest(readAgentUsage)
  async handle(query: AgentUsageQuery): Promise<z.input<typeof readAgentUsage.reply>> {
    const { workspace, agentId = null, rootId = null, by = 'agent', day = null, at } = query;
    const values = [workspace, agentId, rootId, day];
    if (at === undefined) await this.usage.followHead(FOLLOW_MS);
    return this.past.readAsOf(workspace, at, async (queries) => {
      const statement = { name: `budget_usage_by_${by}`, text: usageSql(by), values };
      const { rows } = await queries.query<UsageRow>(statement).catch(failTranslated);
      const usage = rows.map(toUsage);
      const total = usage.reduce<Total>(addUsage, NOTHING);
      const shown = usage.slice(0, MAX_ROWS);
      if (by !== 'agent') return { agents: [], groups: shown, total };
      return { agents: shown.map(({ name, ...cost }) => ({ agentId: name, ...cost })), total };
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
