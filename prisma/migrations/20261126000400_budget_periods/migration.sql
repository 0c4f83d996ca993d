-- Metrics read the balances of the current day and month over all workspaces. No changing column is in the
-- index, so that a reservation still changes its row in place.
create index budget_balances_period_idx on budget_balances (scope_key)
  where scope_key like 'day/%' or scope_key like 'month/%';
