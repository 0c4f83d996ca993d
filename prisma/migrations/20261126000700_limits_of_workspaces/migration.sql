-- Limits of each session, day and month of a workspace, set at run time (docs/flows/budget.md).
-- False for a scope whose limits were removed: those of the configuration apply again.
alter table budget_limits add column is_set boolean not null default true;
