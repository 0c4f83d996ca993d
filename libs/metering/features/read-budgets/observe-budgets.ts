import { DEFAULT_WORKSPACE } from '@antiphon/contracts/log';
import type { ScopeUsage } from '@antiphon/contracts/metering';
import { observeGauges } from '@antiphon/observability';
import type { ReadBudgets } from './read-budgets.js';

type Gauge = 'antiphon_budget_tokens' | 'antiphon_budget_usd' | 'antiphon_budget_frozen';
type Report = (name: Gauge, value: number, labels: Readonly<Record<string, string>>) => void;

const reportScope = (scope: ScopeUsage, report: Report): void => {
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
    if (amount !== null) report(name, amount / unit, { scope: kind, state });
  report('antiphon_budget_frozen', scope.frozen ? 1 : 0, { scope: kind });
};

/**
 * Tells of the budgets of the current day and month whenever metrics are read. Those of sessions are too many for
 * labels: `GET /api/v1/budgets` has them. Answers how to stop.
 */
export const observeBudgets = (readBudgets: ReadBudgets): (() => void) =>
  observeGauges<Gauge>(
    {
      antiphon_budget_tokens:
        'Tokens of the current day and month: reserved, settled, and the limit if there is one',
      antiphon_budget_usd:
        'US dollars of the current day and month: reserved, settled, and the limit if there is one',
      antiphon_budget_frozen: '1 while a scope is frozen by a charge over its bound, else 0',
    },
    async (report) => {
      for (const scope of await readBudgets({ workspace: DEFAULT_WORKSPACE })) reportScope(scope, report);
    },
  );
