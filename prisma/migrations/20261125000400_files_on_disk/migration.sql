-- The process that writes file trees to folders holds the lease `files-disk`.
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
