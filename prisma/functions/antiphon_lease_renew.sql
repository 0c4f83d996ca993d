-- Extends leases, and returns those that are still held. Locks rows in the order in which an append locks them.
create or replace function antiphon_lease_renew(
  p_workspace text[], p_name text[], p_owner text[], p_epoch bigint[], p_ttl_ms float8
) returns table (workspace text, name text)
language plpgsql security definer set search_path = public, pg_temp as $$
#variable_conflict use_column
begin
  for i in 1 .. cardinality(p_name) loop
    perform antiphon_check_lease(p_name[i]);
  end loop;
  return query
    with held as (
      select l.workspace, l.name from leases l
      join unnest(p_workspace, p_name, p_owner, p_epoch) as r (workspace, name, owner, epoch)
        on l.workspace = r.workspace and l.name = r.name and l.owner = r.owner and l.epoch = r.epoch
      order by l.workspace, l.name for update of l)
    update leases l set expires_at = clock_timestamp() + make_interval(secs => p_ttl_ms / 1000)
    from held where l.workspace = held.workspace and l.name = held.name
    returning l.workspace, l.name;
end $$;
