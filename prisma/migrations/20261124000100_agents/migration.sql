-- Projection `agent-agents`: agents, their activity and the changes of their state, as lists, sweeps and clients read them.

create table agent_agents (
  workspace text collate "C" not null,
  agent_id text collate "C" not null,
  -- The fold of the agent's event stream.
  record jsonb not null,
  status text collate "C" not null,
  parent_id text collate "C",
  root_id text collate "C" not null,
  project text collate "C",
  -- Position of `TreeMemberQueued` while the agent waits for a place.
  queued_at bigint,
  queue_limit text collate "C",
  first_position bigint not null,
  last_position bigint not null,
  constraint agent_agents_pkey primary key (workspace, agent_id)
) with (fillfactor = 70);
create index agent_agents_list_idx on agent_agents (workspace, first_position);
create index agent_agents_change_idx on agent_agents (last_position);

create table agent_activity (
  workspace text collate "C" not null,
  agent_id text collate "C" not null,
  open_turns integer not null,
  phase text collate "C",
  -- Newest completed turn, whose answer is the agent's result at its end.
  last_session_id uuid,
  last_turn_id uuid,
  constraint agent_activity_pkey primary key (workspace, agent_id)
) with (fillfactor = 50);

create table agent_session_agents (
  workspace text collate "C" not null,
  session_id uuid not null,
  agent_id text collate "C" not null,
  constraint agent_session_agents_pkey primary key (workspace, session_id)
);

create table agent_state_changes (
  workspace text collate "C" not null,
  agent_id text collate "C" not null,
  position bigint not null,
  from_state text collate "C",
  to_state text collate "C" not null,
  phase text collate "C",
  actor text collate "C" not null,
  reason text,
  event_id uuid not null,
  at timestamptz(3) not null,
  constraint agent_state_changes_pkey primary key (workspace, agent_id, position)
);
create index agent_state_changes_age_idx on agent_state_changes (at);

-- Operational state: the last sign of life of the process that works for an agent. Any row may be deleted at any time.
create table agent_heartbeats (
  workspace text collate "C" not null,
  agent_id text collate "C" not null,
  owner text collate "C" not null,
  last_seen_at timestamptz(3) not null,
  constraint agent_heartbeats_pkey primary key (workspace, agent_id)
) with (fillfactor = 50);

grant select, insert, update, delete on agent_agents, agent_activity, agent_session_agents, agent_state_changes,
  agent_heartbeats to antiphon_agent;
grant select on agent_agents, agent_activity, agent_session_agents, agent_state_changes to antiphon_reader;

do $$
declare
  name text;
begin
  foreach name in array array['agent_agents', 'agent_activity', 'agent_session_agents', 'agent_state_changes',
    'agent_heartbeats'] loop
    execute format('alter table %I enable row level security', name);
    execute format($policy$create policy own_workspace on %I
      using (workspace = current_setting('antiphon.workspace', true))$policy$, name);
    execute format($policy$create policy all_workspaces on %I
      to antiphon_agent, antiphon_metering, antiphon_memory, antiphon_reader, antiphon_archiver
      using (current_setting('antiphon.workspace', true) = '*')$policy$, name);
  end loop;
end $$;
