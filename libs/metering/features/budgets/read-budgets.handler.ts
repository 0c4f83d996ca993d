import { Controller, Inject } from '@nestjs/common';
import type pg from 'pg';
import { DEFAULT_WORKSPACE } from '@antiphon/contracts/log';
import { readBudgets } from '@antiphon/contracts/metering';
import type { BudgetScope, ScopeKind, ScopeUsage } from '@antiphon/contracts/metering';
import { translateDatabaseError, type WorkspaceQueries } from '@antiphon/database';
import type { PastReads } from '@antiphon/event-store';
import { isoTime } from '@antiphon/kernel';
import type { Clock } from '@antiphon/kernel';
import { HandleRequest } from '@antiphon/messaging';
import { emptyBalance, periodKeysAt, periodScopesAt, scopesAt } from '@antiphon/metering-domain';
import type { Balance, SetLimits } from '@antiphon/metering-domain';
import type { z } from 'zod';
import { observeGauges } from '@antiphon/observability';
import { CLOCK, DATABASE_POOL } from '@antiphon/service-host';
import {
  listLimitedAgents,
  readAgentScopes,
  readSetLimits,
  type BudgetLimitStore,
} from './budget-limit-store.js';
import { readBalances, readPeriods } from '../ledger/ledger-rows.js';
import { BUDGET_LIMIT_STORE, PAST_READS } from '../metering.tokens.js';

/** Number of workspaces whose budgets are metrics. */
const MAX_METRIC_WORKSPACES = 100;

export interface ReadBudgetsQuery {
  readonly workspace: string;
  readonly sessionId?: string | undefined;
  readonly agentId?: string | undefined;
  readonly withAgents?: boolean | undefined;
  readonly at?: number | undefined;
}

/** Budgets of one workspace. */
export interface WorkspaceScopes {
  readonly workspace: string;
  readonly scopes: readonly ScopeUsage[];
}

const TIME_SQL = `select recorded_at from events where workspace = $1 and position <= $2 order by position desc limit 1`;

/** Returns the time of the workspace's newest event up to a position. */
const readTimeOf = async (queries: WorkspaceQueries, workspace: string, upTo: number): Promise<string> => {
  const { rows } = await queries.query<{ recorded_at: Date }>(TIME_SQL, [workspace, upTo]);
  return (rows[0]?.recorded_at ?? new Date(0)).toISOString();
};

/**
 * Returns limits, reservations and spending of the current day and month, and of a session and an
 * agent if they are named.
 */
@Controller()
export class ReadBudgets {
  constructor(
    @Inject(DATABASE_POOL) private readonly pool: pg.Pool,
    @Inject(CLOCK) private readonly clock: Clock,
    @Inject(BUDGET_LIMIT_STORE)
    private readonly limitStore: Pick<BudgetLimitStore, 'scopesOf' | 'readSetLimits' | 'merge'>,
    @Inject(PAST_READS) private readonly past: PastReads,
  ) {}

  @HandleRequest(readBudgets)
  handle(query: ReadBudgetsQuery): Promise<z.input<typeof readBudgets.reply>> {
    const { workspace, agentId, withAgents, at } = query;
    return this.past.readAsOf(workspace, at, async (queries, upTo) => {
      const isNow = at === undefined;
      const now = isNow ? isoTime(this.clock) : await readTimeOf(queries, workspace, upTo);
      const listed = withAgents ? await listLimitedAgents(queries, workspace) : [];
      const named = [...new Set([...(agentId === undefined ? [] : [agentId]), ...listed])];
      const agents = isNow
        ? await this.limitStore.scopesOf(workspace, named)
        : await readAgentScopes(queries, workspace, named);
      const set = await (isNow
        ? this.limitStore.readSetLimits(workspace)
        : readSetLimits(queries, workspace));
      return this.readScopes(query, { now, agents, set }, queries);
    });
  }

  private async readScopes(
    { workspace, sessionId }: ReadBudgetsQuery,
    { now, agents, set }: { now: string; agents: readonly BudgetScope[]; set: SetLimits },
    queries: WorkspaceQueries,
  ): Promise<z.input<typeof readBudgets.reply>> {
    const limits = this.limitStore.merge(workspace, set);
    const scopes =
      sessionId === undefined
        ? [...agents, ...periodScopesAt(limits, now)]
        : scopesAt(limits, sessionId.toLowerCase(), now, agents);
    const keys = scopes.map(({ key }) => key);
    const balances = await readBalances(queries, workspace, keys).catch((error: unknown) => {
      throw translateDatabaseError(error);
    });
    const eachSession = {
      limitTokens: limits.session,
      limitMicroUsd: limits.sessionMicroUsd,
      limitFrom: originOf('session', set),
    };
    const usages = scopes.map((scope) => ({
      ...usageOf(scope, balances),
      limitFrom: originOf(scope.kind, set),
    }));
    return { scopes: usages, eachSession };
  }

  /**
   * Returns the current periods of the default workspace, and of the workspaces that spent most
   * this month.
   */
  async periods(max = MAX_METRIC_WORKSPACES): Promise<WorkspaceScopes[]> {
    const now = isoTime(this.clock);
    const keys = periodKeysAt(now);
    const balances = await readPeriods(this.pool, keys, DEFAULT_WORKSPACE, max).catch((error: unknown) => {
      throw translateDatabaseError(error);
    });
    return Promise.all(
      [...balances].map(async ([workspace, own]) => {
        const limits = this.limitStore.merge(workspace, await this.limitStore.readSetLimits(workspace));
        return { workspace, scopes: periodScopesAt(limits, now).map((scope) => usageOf(scope, own)) };
      }),
    );
  }
}

const usageOf = (scope: BudgetScope, balances: ReadonlyMap<string, Balance>): ScopeUsage => {
  const { frozenBy, ...amounts } = balances.get(scope.key) ?? emptyBalance;
  return { ...scope, ...amounts, frozen: frozenBy !== null };
};

const originOf = (kind: ScopeKind, set: SetLimits): 'configuration' | 'run_time' =>
  kind === 'agent' || kind === 'task' || set.has(kind) ? 'run_time' : 'configuration';

type Gauge = 'antiphon_budget_tokens' | 'antiphon_budget_usd' | 'antiphon_budget_frozen';
type Report = (name: Gauge, value: number, labels: Readonly<Record<string, string>>) => void;

const reportScope = (workspace: string, scope: ScopeUsage, report: Report): void => {
  const { kind } = scope;
  const amounts: readonly (readonly [Gauge, string, number | null, number])[] = [
    ['antiphon_budget_tokens', 'reserved', scope.reservedTokens, 1],
    ['antiphon_budget_tokens', 'settled', scope.settledTokens, 1],
    ['antiphon_budget_tokens', 'limit', scope.limitTokens, 1],
    ['antiphon_budget_usd', 'reserved', scope.reservedMicroUsd, 1e6],
    ['antiphon_budget_usd', 'settled', scope.settledMicroUsd, 1e6],
    ['antiphon_budget_usd', 'limit', scope.limitMicroUsd, 1e6],
  ];
  for (const [name, state, amount, unit] of amounts)
    if (amount !== null) report(name, amount / unit, { workspace, scope: kind, state });
  report('antiphon_budget_frozen', scope.frozen ? 1 : 0, { workspace, scope: kind });
};

/**
 * Reports the budgets of the current day and month whenever metrics are read, for the workspaces
 * that spent most. Sessions are too many for labels. Returns a function that stops the reports.
 */
export const observeBudgets = (budgets: Pick<ReadBudgets, 'periods'>): (() => void) =>
  observeGauges<Gauge>(
    {
      antiphon_budget_tokens:
        'Tokens of the current day and month: reserved, settled, and the limit if there is one',
      antiphon_budget_usd:
        'US dollars of the current day and month: reserved, settled, and the limit if there is one',
      antiphon_budget_frozen: '1 while a scope is frozen by a charge over its bound, else 0',
    },
    async (report) => {
      for (const { workspace, scopes } of await budgets.periods())
        for (const scope of scopes) reportScope(workspace, scope, report);
    },
  );
