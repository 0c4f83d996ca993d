-- Deletes up to p_limit idempotency claims that were made before p_before, and returns their number. A claim of a run that
-- has not ended stays: the run would start the same node again, for as long as it waits for an approval.
create or replace function antiphon_delete_claims(p_before timestamptz, p_limit integer) returns bigint
language plpgsql security definer set search_path = public, pg_temp as $$
declare
  deleted bigint;
begin
  if p_before > now() - interval '1 day' then
    raise exception 'claims of the last day stay' using errcode = 'check_violation';
  end if;
  delete from idempotency i using (
    select c.workspace, c.scope, c.key from idempotency c
    where c.created_at < p_before and not exists (
      select from agent_runs r where r.workspace = c.workspace and r.ended_at is null
        and (c.key = 'run/' || r.run_id or starts_with(c.key, 'run/' || r.run_id || '/')
          or starts_with(c.scope, 'run/' || r.run_id || '/')))
    order by c.created_at limit p_limit for update skip locked
  ) old where i.workspace = old.workspace and i.scope = old.scope and i.key = old.key;
  get diagnostics deleted = row_count;
  return deleted;
end $$;
