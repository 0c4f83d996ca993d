-- True when the role that the session has taken may hold the lease. Agent: drivers hold `session/<id>`, external workers hold
-- `task/<id>`, the process that assigns tasks `delegation`, the runner of plans `agent/plans`, the writer of folders
-- `files-disk`. Memory: the relay holds `relay`, and the signer `log-roots`.
create or replace function antiphon_owns_lease(p_name text) returns boolean
language plpgsql stable set search_path = public, pg_temp as $$
declare
  service constant text := case split_part(p_name, '/', 1)
    when 'session' then 'agent' when 'task' then 'agent' when 'delegation' then 'agent' when 'agent' then 'agent'
    when 'files-disk' then 'agent'
    when 'relay' then 'memory' when 'log-roots' then 'memory' end;
begin
  return service is not null
    and pg_has_role(coalesce(nullif(current_setting('role'), 'none'), session_user), 'antiphon_' || service, 'member');
end $$;
