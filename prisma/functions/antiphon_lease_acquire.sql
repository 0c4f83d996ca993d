-- Acquires a free, expired or own lease. An own unexpired lease keeps its epoch. Every other acquisition raises it. Returns no
-- epoch when another owner holds the lease.
create or replace function antiphon_lease_acquire(p_workspace text, p_name text, p_owner text, p_ttl_ms float8) returns bigint
language plpgsql security definer set search_path = public, pg_temp as $$
declare
  acquired bigint;
begin
  perform antiphon_check_lease(p_name);
  insert into leases as l (workspace, name, owner, epoch, expires_at)
    select p_workspace, p_name, p_owner, f.epoch + 1, clock_timestamp() + make_interval(secs => p_ttl_ms / 1000)
    from lease_floor f where f.id = 1
    on conflict (workspace, name) do update set
      epoch = case when l.owner = excluded.owner and l.expires_at > clock_timestamp() then l.epoch else l.epoch + 1 end,
      owner = excluded.owner, expires_at = excluded.expires_at
    where l.owner is null or l.owner = excluded.owner or l.expires_at <= clock_timestamp()
    returning l.epoch into acquired;
  return acquired;
end $$;
