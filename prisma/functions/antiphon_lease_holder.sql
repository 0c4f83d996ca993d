-- Returns the owner and the epoch of a lease that the role may hold.
create or replace function antiphon_lease_holder(p_workspace text, p_name text, out owner text, out epoch bigint)
language plpgsql stable security definer set search_path = public, pg_temp as $$
begin
  perform antiphon_check_lease(p_name);
  select l.owner, l.epoch into owner, epoch from leases l where l.workspace = p_workspace and l.name = p_name;
end $$;
