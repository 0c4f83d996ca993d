-- Starts and ends of plan runs: the process that drives them reads only those after its last read.
drop index events_plan_run_idx;
create index events_plan_runs_idx on events (position) where type in ('PlanRunStarted', 'PlanRunEnded');
