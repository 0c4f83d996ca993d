-- Runs of plans: a process that takes over finds the open ones without a scan of the log.
create index events_plan_run_idx on events (position) where type = 'PlanRunStarted';
