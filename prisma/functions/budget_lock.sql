-- Inserts the missing rows of these scopes, locks them and the rows of the reservations that exist, and returns both, as rows of
-- which one half is null. Locks go in the order of their keys, after the inserts of all missing rows in the same order, so no
-- two transactions wait in a circle. Each statement sees what the last holder of a lock has committed.
create or replace function budget_lock(
  p_workspace text[], p_key text[], p_reservation_workspace text[], p_reservation uuid[]
) returns table (
  workspace text, scope_key text, reserved_tokens bigint, settled_tokens bigint, reserved_micro_usd bigint,
  settled_micro_usd bigint, frozen_by uuid, reservation_id uuid, status text, stream_version bigint, reserved jsonb,
  charged_tokens bigint, charged_micro_usd bigint, corrected boolean
)
language plpgsql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
as $$
#variable_conflict use_column
begin
  insert into budget_balances (workspace, scope_key)
    select s.workspace, s.key from unnest(p_workspace, p_key) as s (workspace, key)
    order by 1, 2 on conflict do nothing;
  return query
    select b.workspace, b.scope_key, b.reserved_tokens, b.settled_tokens, b.reserved_micro_usd, b.settled_micro_usd,
      b.frozen_by, null::uuid, null::text, null::bigint, null::jsonb, null::bigint, null::bigint, null::boolean
    from (
      select s.workspace, s.key from unnest(p_workspace, p_key) as s (workspace, key)
      union
      select i.workspace, r.key from unnest(p_reservation_workspace, p_reservation) as i (workspace, id),
        lateral (
          select unnest(r.scope_keys) as key from budget_reservations r
          where r.workspace = i.workspace and r.reservation_id = i.id offset 0) r
      order by 1, 2
    ) w,
    lateral (select * from budget_balances b where b.workspace = w.workspace and b.scope_key = w.key for update) b;
  return query
    select r.workspace, null::text, null::bigint, null::bigint, null::bigint, null::bigint, null::uuid,
      r.reservation_id, r.status, r.stream_version, r.reserved, r.charged_tokens, r.charged_micro_usd, r.corrected
    from (
      select i.workspace, i.id from unnest(p_reservation_workspace, p_reservation) as i (workspace, id)
      union -- what froze one of these scopes: lifting a freeze is told in its stream
      select s.workspace, b.frozen_by from unnest(p_workspace, p_key) as s (workspace, key),
        lateral (select b.frozen_by from budget_balances b where b.workspace = s.workspace and b.scope_key = s.key offset 0) b
      where b.frozen_by is not null
    ) n,
    lateral (select * from budget_reservations r where r.workspace = n.workspace and r.reservation_id = n.id offset 0) r;
end $$;
