-- Limits of agents: the newest `BudgetLimitSet` of each scope. Flow: docs/flows/budget.md.

create table budget_limits (
  workspace text collate "C" not null,
  scope_key text collate "C" not null,
  limit_tokens bigint,
  limit_micro_usd bigint,
  -- Position of the event in the log, by which processes find what changed.
  position bigint not null,
  constraint budget_limits_pkey primary key (workspace, scope_key),
  constraint budget_limits_not_negative check (least(limit_tokens, limit_micro_usd, 0) >= 0)
);
create index budget_limits_position_idx on budget_limits (position);

alter table budget_limits enable row level security;
create policy own_workspace on budget_limits
  using (workspace = current_setting('antiphon.workspace', true));
create policy all_workspaces on budget_limits
  to antiphon_agent, antiphon_metering, antiphon_memory, antiphon_reader, antiphon_archiver
  using (current_setting('antiphon.workspace', true) = '*');

revoke all on budget_limits from public;
grant select, insert, update, delete on budget_limits to antiphon_metering;
grant select on budget_limits to antiphon_reader;
