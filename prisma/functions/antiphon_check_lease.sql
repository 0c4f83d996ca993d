-- Raises insufficient_privilege unless the role that the session has taken may hold the lease.
create or replace function antiphon_check_lease(p_name text) returns void
language plpgsql stable set search_path = public, pg_temp as $$
begin
  if not antiphon_owns_lease(p_name) then
    raise exception 'this service may not hold the lease %', p_name using errcode = 'insufficient_privilege';
  end if;
end $$;
