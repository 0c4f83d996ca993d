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
    {
      name: 'budget_reservations',
      // The hourly sweep deletes ended reservations whose stream is archived.
      ignoredRows: `open_until is null and exists (select from public.archived_streams a
        join public.log_archives l using (archive_id)
        where a.workspace = budget_reservations.workspace and a.stream_id = 'budget-' || reservation_id
          and l.rows_deleted_at is not null)`,
    },
    // A row without an event: a limit was set to none before the agent had one.
    { name: 'budget_limits', ignoredRows: 'position = 0' },
  ],
  handle: applyBudgetEvents,
  writtenWithAppend: true,
};

export const meteringProjections = [budgetLedger] as const;
