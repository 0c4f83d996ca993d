-- Deletes up to p_limit free leases of sessions and tasks that were last held before p_before, and returns their number. The
-- floor of epochs rises in the same statement: a lease that is made later begins above every deleted one.
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
