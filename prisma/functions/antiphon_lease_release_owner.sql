-- Releases the leases of dead owners that the role may hold, and returns their number.
create or replace function antiphon_lease_release_owner(p_prefix text) returns bigint
language plpgsql security definer set search_path = public, pg_temp as $$
declare
  released bigint;
begin
  with held as (
    select l.workspace, l.name from leases l
    where starts_with(l.owner, p_prefix) and antiphon_owns_lease(l.name)
    order by l.workspace, l.name for update)
  update leases l set owner = null, expires_at = clock_timestamp()
  from held where l.workspace = held.workspace and l.name = held.name;
  get diagnostics released = row_count;
  return released;
end $$;
