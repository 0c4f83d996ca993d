-- Row-level security by workspace. Decision: docs/adr/0150-isolate-workspaces-by-row-level-security.md.
-- `antiphon.workspace` names the workspace of a transaction. Without it, a role that is not the owner reads no row.

do $$
begin
  if not exists (select from pg_roles where rolname = 'antiphon_archiver') then
    begin
      create role antiphon_archiver nologin;
    exception when duplicate_object or unique_violation then
      null;
    end;
  end if;
  if not (select rolsuper from pg_roles where rolname = current_user) then
    begin
      execute format('grant antiphon_archiver to %I', current_user);
    exception when insufficient_privilege then
      if not pg_has_role(current_user, 'antiphon_archiver', 'member') then
        raise;
      end if;
    end;
  end if;
end $$;

-- The setting is compared row by row: a sub-select would be planned and started for each statement, which costs a turn
-- more than the comparison of its few rows.
do $$
declare
  name text;
begin
  foreach name in array array['events', 'stream_heads', 'leases', 'idempotency', 'archived_streams',
    'budget_balances', 'budget_reservations', 'memory_sessions', 'memory_facts', 'agent_sessions', 'agent_session_snapshots',
    'agent_workflows', 'agent_runs', 'agent_approvals', 'provider_breakers'] loop
    execute format('alter table %I enable row level security', name);
    execute format($policy$create policy own_workspace on %I
      using (workspace = current_setting('antiphon.workspace', true))$policy$, name);
    -- System readers (relay, projections, sweeps, audit) name all workspaces. The gateway acts for one caller at a time, and
    -- the sandbox for none: neither has this policy.
    execute format($policy$create policy all_workspaces on %I
      to antiphon_agent, antiphon_metering, antiphon_memory, antiphon_reader, antiphon_archiver
      using (current_setting('antiphon.workspace', true) = '*')$policy$, name);
  end loop;
end $$;

-- Parked streams: read by workspace, written only for the projections of the role.
alter table projection_parked enable row level security;
create policy own_workspace on projection_parked for select
  using (workspace = current_setting('antiphon.workspace', true));
create policy all_workspaces on projection_parked for select
  to antiphon_agent, antiphon_metering, antiphon_memory, antiphon_reader, antiphon_archiver
  using (current_setting('antiphon.workspace', true) = '*');
alter table projection_checkpoints enable row level security;
-- A checkpoint is a position without content.
create policy any_projection on projection_checkpoints for select using (true);
do $$
declare
  service text;
  prefix text;
begin
  for service, prefix in
    select * from (values ('agent', 'agent'), ('memory', 'memory'), ('metering', 'budget')) v loop
    execute format($policy$create policy own_%s on projection_parked to antiphon_%s
      using (split_part(projection, '-', 1) = %L and current_setting('antiphon.workspace', true) = '*')$policy$,
      prefix, service, prefix);
    execute format($policy$create policy own_%s on projection_checkpoints to antiphon_%s
      using (split_part(name, '-', 1) = %L)$policy$, prefix, service, prefix);
  end loop;
end $$;

-- Streams of an agent's sessions and tasks in the workspace of the transaction. A policy hides rows before any condition that
-- could leak them, so that the planner may not use the indexes on `data ->> 'agentId'` for other roles than the owner.
create function antiphon_streams_of_agent(p_agent text) returns setof text
language sql stable security definer set search_path = public, pg_temp as $$
  select e.stream_id from events e
    where e.workspace = current_setting('antiphon.workspace', true) and e.type = 'SessionStarted'
      and e.data ->> 'agentId' = p_agent
  union all
  select e.stream_id from events e
    where e.workspace = current_setting('antiphon.workspace', true) and e.type = 'TaskStarted'
      and e.data ->> 'agentId' = p_agent
$$;
revoke all on function antiphon_streams_of_agent from public;
grant execute on function antiphon_streams_of_agent to antiphon_gateway;
