-- Projection `agent-runs`: workflows and runs as lists and the reconciler read them; the log has everything else.

create table agent_workflows (
  workspace text collate "C" not null,
  workflow_id uuid not null,
  name text collate "C" not null,
  status text collate "C" not null,
  version integer not null,
  nodes integer not null,
  open_runs integer not null,
  updated_at timestamptz(3) not null,
  first_position bigint not null,
  constraint agent_workflows_pkey primary key (workspace, workflow_id)
) with (fillfactor = 70);
create index agent_workflows_list_idx on agent_workflows (workspace, first_position);

create table agent_runs (
  workspace text collate "C" not null,
  run_id uuid not null,
  workflow_id uuid,
  name text collate "C" not null,
  status text collate "C" not null,
  first_agent text collate "C" not null,
  started_at timestamptz(3) not null,
  ended_at timestamptz(3),
  first_position bigint not null,
  constraint agent_runs_pkey primary key (workspace, run_id)
) with (fillfactor = 70);
create index agent_runs_list_idx on agent_runs (workspace, first_position);
create index agent_runs_open_idx on agent_runs (first_position) where ended_at is null;

grant select, insert, update, delete on agent_workflows, agent_runs to antiphon_agent;
grant select on agent_workflows, agent_runs to antiphon_reader;
