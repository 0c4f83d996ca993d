-- What agents use, in samples of 30 seconds. Each process of the agent service has a row of its own, for the work that it did.
create table agent_metrics (
  workspace text collate "C" not null,
  agent_id text collate "C" not null,
  at timestamptz(3) not null,
  process text collate "C" not null,
  cpu_ms double precision not null,
  memory_bytes bigint not null,
  disk_bytes bigint not null,
  disk_read_bytes bigint not null,
  disk_written_bytes bigint not null,
  turns integer not null,
  model_calls integer not null,
  tool_calls integer not null,
  input_tokens bigint not null,
  output_tokens bigint not null,
  constraint agent_metrics_pkey primary key (workspace, agent_id, at, process)
);
-- Old samples are deleted by their time.
create index agent_metrics_at_idx on agent_metrics using brin (at);

alter table agent_metrics enable row level security;
create policy own_workspace on agent_metrics using (workspace = current_setting('antiphon.workspace', true));
create policy all_workspaces on agent_metrics
  to antiphon_agent, antiphon_metering, antiphon_memory, antiphon_reader, antiphon_archiver
  using (current_setting('antiphon.workspace', true) = '*');
grant select, insert, delete on agent_metrics to antiphon_agent;
grant select on agent_metrics to antiphon_reader;
