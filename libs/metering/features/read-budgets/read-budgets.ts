import type pg from 'pg';
import { translateDatabaseError } from '@antiphon/database';
import { isoTime } from '@antiphon/kernel';
import type { Clock } from '@antiphon/kernel';
import type { ScopeUsage } from '@antiphon/contracts/metering';
import { emptyBalance, periodScopesAt, scopesAt } from '@antiphon/metering-domain';
import type { BudgetLimits } from '@antiphon/metering-domain';
import { readBalances } from '../keep-ledger/ledger-rows.js';

export interface ReadBudgetsQuery {
  readonly workspace: string;
  readonly sessionId?: string | undefined;
}
export type ReadBudgets = (query: ReadBudgetsQuery) => Promise<ScopeUsage[]>;

/** The current day and month, and a session if one is named: its limits, what is held and what is spent. */
export const createReadBudgets =
  (pool: pg.Pool, clock: Clock, limits: BudgetLimits): ReadBudgets =>
  async ({ workspace, sessionId }) => {
    const now = isoTime(clock);
    const scopes =
      sessionId === undefined ? periodScopesAt(limits, now) : scopesAt(limits, sessionId.toLowerCase(), now);
    const keys = scopes.map(({ key }) => key);
    const balances = await readBalances(pool, workspace, keys).catch((error: unknown) => {
      throw translateDatabaseError(error);
    });
    return scopes.map((scope) => {
      const { frozenBy, ...amounts } = balances.get(scope.key) ?? emptyBalance;
      return { ...scope, ...amounts, frozen: frozenBy !== null };
    });
  };
