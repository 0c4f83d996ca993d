import type { ProjectionDefinition } from '@antiphon/event-store';
import { projectUsage } from './budget-usage.projection.js';
import { applyBudgetEvents } from './rebuild-balances.js';

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
    {
      name: 'budget_reservations',
      // The hourly sweep deletes ended reservations whose stream is archived.
      ignoredRows: `open_until is null and exists (select from public.archived_streams a
        join public.log_archives l using (archive_id)
        where a.workspace = budget_reservations.workspace and a.stream_id = 'budget-' || reservation_id
          and l.rows_deleted_at is not null)`,
      // A settled reservation changes no more, unless it froze a scope.
      snapshotRows: `status <> 'settled' or exists (select from budget_balances b
        where b.workspace = budget_reservations.workspace and b.frozen_by = reservation_id)`,
    },
    // A row without an event: a limit was set to none before the agent had one.
    { name: 'budget_limits', ignoredRows: 'position = 0' },
  ],
  handle: applyBudgetEvents,
  writtenWithAppend: true,
};

/** Sums of reservations, for reads of usage. */
export const budgetUsage: ProjectionDefinition = {
  name: 'budget-usage',
  service: 'metering',
  categories: ['budget'],
  tables: [{ name: 'budget_usage' }],
  handle: projectUsage,
};

export const meteringProjections = [budgetLedger, budgetUsage] as const;
