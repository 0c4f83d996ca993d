-- Projection `agent-tasks`: one row a task of the queue, and one a node of a run, as lists read them.
create table agent_tasks (
  workspace text collate "C" not null,
  -- UUID, or `<runId>/<nodeId>`.
  id text collate "C" not null,
  kind text collate "C" not null,
  title text not null,
  state text collate "C" not null,
  priority integer not null,
  capabilities jsonb not null,
  agent_id text collate "C",
  pinned_to text collate "C",
  worker text collate "C",
  epoch integer not null,
  strikes jsonb not null,
  project text collate "C",
  parent_agent_id text collate "C",
  parent_task_id uuid,
  deadline timestamptz(3),
  session_id uuid,
  turn_id uuid,
  queued_at timestamptz(3) not null,
  started_at timestamptz(3),
  ended_at timestamptz(3),
  result jsonb,
  first_position bigint not null,
  constraint agent_tasks_pkey primary key (workspace, id)
) with (fillfactor = 70);
create index agent_tasks_list_idx on agent_tasks (workspace, first_position, id);
create index agent_tasks_open_idx on agent_tasks (first_position) where ended_at is null;

alter table agent_tasks enable row level security;
create policy own_workspace on agent_tasks using (workspace = current_setting('antiphon.workspace', true));
create policy all_workspaces on agent_tasks
  to antiphon_agent, antiphon_metering, antiphon_memory, antiphon_reader, antiphon_archiver
  using (current_setting('antiphon.workspace', true) = '*');

grant select, insert, update, delete on agent_tasks to antiphon_agent;
grant select on agent_tasks to antiphon_reader;

-- Tasks of external workers hold `task/<id>`, and the process that assigns tasks holds `delegation`.
create or replace function antiphon_owns_lease(p_name text) returns boolean
language plpgsql stable set search_path = public, pg_temp as $$
declare
  service constant text := case split_part(p_name, '/', 1)
    when 'session' then 'agent' when 'task' then 'agent' when 'delegation' then 'agent' when 'agent' then 'agent'
    when 'relay' then 'memory' when 'log-roots' then 'memory' end;
begin
  return service is not null
    and pg_has_role(coalesce(nullif(current_setting('role'), 'none'), session_user), 'antiphon_' || service, 'member');
end $$;

-- As before, and also for the leases of tasks.
create or replace function antiphon_delete_leases(p_before timestamptz, p_limit integer) returns bigint
language plpgsql security definer set search_path = public, pg_temp as $$
declare
  deleted bigint;
begin
  if p_before > now() - interval '1 day' then
    raise exception 'leases of the last day stay' using errcode = 'check_violation';
  end if;
  -- Acquisitions read the floor: they wait until this commits.
  lock table lease_floor in access exclusive mode;
  with old as (
    select workspace, name, epoch from leases
    where (starts_with(name, 'session/') or starts_with(name, 'task/')) and expires_at < p_before
    order by workspace, name limit p_limit for update skip locked
  ), gone as (
    delete from leases l using old where l.workspace = old.workspace and l.name = old.name returning old.epoch
  ), floor as (
    update lease_floor set epoch = greatest(epoch, (select max(g.epoch) from gone g)) where id = 1
  )
  select count(*) from gone into deleted;
  return deleted;
end $$;
