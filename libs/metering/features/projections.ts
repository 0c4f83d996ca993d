import type { ProjectionDefinition } from '@antiphon/event-store';
import { applyBudgetEvents } from './ledger/rebuild-balances.js';

/** The ledger. Each admission writes it in the transaction that appends its events. */
export const budgetLedger: ProjectionDefinition = {
  name: 'budget-ledger',
  service: 'metering',
  categories: ['budget'],
  tables: [
    {
      name: 'budget_balances',
      // A scope that has refused only has a row of zeros.
      ignoredRows: `reserved_tokens = 0 and settled_tokens = 0 and reserved_micro_usd = 0 and settled_micro_usd = 0
        and frozen_by is null`,
    },
    { name: 'budget_reservations' },
    // A row without an event: a limit was set to none before the agent had one.
    { name: 'budget_limits', ignoredRows: 'position = 0' },
  ],
  handle: applyBudgetEvents,
  writtenWithAppend: true,
};

export const meteringProjections = [budgetLedger] as const;
