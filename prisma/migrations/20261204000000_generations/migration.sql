-- Model calls with an unknown or estimated usage, which their vendor tells later. The sweep of the agent service deletes
-- old rows.
create table agent_generations (
  workspace text collate "C" not null,
  position bigint not null,
  reservation_id uuid not null,
  provider text collate "C" not null,
  model text collate "C" not null,
  generation_id text collate "C" not null,
  at timestamptz(3) not null,
  constraint agent_generations_pkey primary key (workspace, position)
);
create index agent_generations_age_idx on agent_generations (at);

grant select, insert, update, delete on agent_generations to antiphon_agent;
grant select on agent_generations to antiphon_reader;

alter table agent_generations enable row level security;
create policy own_workspace on agent_generations using (workspace = current_setting('antiphon.workspace', true));
create policy all_workspaces on agent_generations
  to antiphon_agent, antiphon_metering, antiphon_memory, antiphon_reader, antiphon_archiver
  using (current_setting('antiphon.workspace', true) = '*');
