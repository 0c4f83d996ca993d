-- Releases a lease, if this owner holds it in this epoch.
create or replace function antiphon_lease_release(p_workspace text, p_name text, p_owner text, p_epoch bigint) returns void
language plpgsql security definer set search_path = public, pg_temp as $$
begin
  perform antiphon_check_lease(p_name);
  update leases l set owner = null, expires_at = clock_timestamp()
    where l.workspace = p_workspace and l.name = p_name and l.owner = p_owner and l.epoch = p_epoch;
end $$;
