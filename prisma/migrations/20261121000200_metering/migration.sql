-- Metering's working state: what the fold of all budget events says at the newest one. Decisions: docs/adr/0040.

-- One row for each scope (`session/<id>`, `day/2026-11-21`, `month/2026-11`); its lock orders admissions.
create table budget_balances (
  workspace text collate "C" not null,
  scope_key text collate "C" not null,
  reserved_tokens bigint not null default 0,
  settled_tokens bigint not null default 0,
  reserved_micro_usd bigint not null default 0,
  settled_micro_usd bigint not null default 0,
  frozen_by uuid,
  constraint budget_balances_pkey primary key (workspace, scope_key),
  constraint budget_balances_not_negative check (
    least(reserved_tokens, settled_tokens, reserved_micro_usd, settled_micro_usd) >= 0)
) with (fillfactor = 50);

create table budget_reservations (
  workspace text collate "C" not null,
  reservation_id uuid not null,
  session_id uuid not null,
  attempt integer not null,
  scope_keys text[] not null,
  status text collate "C" not null,
  stream_version bigint not null,
  -- Data of its BudgetReserved event.
  reserved jsonb not null,
  charged_tokens bigint not null,
  charged_micro_usd bigint not null,
  corrected boolean not null,
  -- When it expires; null once it has ended, so that this index finds the open ones alone.
  open_until timestamptz(3),
  constraint budget_reservations_pkey primary key (workspace, reservation_id),
  constraint budget_reservations_status check (status in ('reserved', 'settled', 'released', 'expired_estimated')),
  constraint budget_reservations_open check ((status = 'reserved') = (open_until is not null))
) with (fillfactor = 70);
create index budget_reservations_open_idx on budget_reservations (workspace, open_until);

-- Both functions plan once: planning their statements anew for each call costs more than running them. `lateral` and
-- the loops look each row up by its key, whatever the planner believes about the size of a table that was empty just now.

-- Makes the rows of these scopes, locks them and those of the reservations that exist, and answers both, as rows of
-- which one half is null. Locks go in the order of their keys, after the inserts of all missing rows in the same order,
-- so nobody waits in a circle. Each statement sees what the last holder of a lock has committed.
create function budget_lock(
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

-- Writes what a batch changed: differences of balances (one for each scope), reservations that went on, new ones.
create function budget_write(
  p_workspace text[], p_key text[], p_reserved_tokens bigint[], p_settled_tokens bigint[], p_reserved_micro_usd bigint[],
  p_settled_micro_usd bigint[], p_marks boolean[], p_frozen_by uuid[],
  u_workspace text[], u_id uuid[], u_status text[], u_version bigint[], u_charged_tokens bigint[],
  u_charged_micro_usd bigint[], u_corrected boolean[], u_open_until timestamptz[],
  n_workspace text[], n_id uuid[], n_status text[], n_version bigint[], n_charged_tokens bigint[],
  n_charged_micro_usd bigint[], n_corrected boolean[], n_open_until timestamptz[],
  n_session_id uuid[], n_attempt integer[], n_scope_keys text[], n_reserved jsonb[]
) returns void
language plpgsql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
as $$
begin
  for i in 1 .. cardinality(p_key) loop
    update budget_balances b set
      reserved_tokens = b.reserved_tokens + p_reserved_tokens[i],
      settled_tokens = b.settled_tokens + p_settled_tokens[i],
      reserved_micro_usd = b.reserved_micro_usd + p_reserved_micro_usd[i],
      settled_micro_usd = b.settled_micro_usd + p_settled_micro_usd[i],
      frozen_by = case when p_marks[i] then p_frozen_by[i] else b.frozen_by end
    where b.workspace = p_workspace[i] and b.scope_key = p_key[i];
  end loop;
  for i in 1 .. cardinality(u_id) loop
    update budget_reservations r set status = u_status[i], stream_version = u_version[i],
      charged_tokens = u_charged_tokens[i], charged_micro_usd = u_charged_micro_usd[i], corrected = u_corrected[i],
      open_until = u_open_until[i]
    where r.workspace = u_workspace[i] and r.reservation_id = u_id[i];
  end loop;
  insert into budget_reservations (workspace, reservation_id, status, stream_version, charged_tokens, charged_micro_usd,
    corrected, open_until, session_id, attempt, scope_keys, reserved)
  select n.workspace, n.id, n.status, n.version, n.charged_tokens, n.charged_micro_usd, n.corrected, n.open_until,
    n.session_id, n.attempt, string_to_array(n.scope_keys, ' '), n.reserved
  from unnest(n_workspace, n_id, n_status, n_version, n_charged_tokens, n_charged_micro_usd, n_corrected, n_open_until,
    n_session_id, n_attempt, n_scope_keys, n_reserved)
    as n (workspace, id, status, version, charged_tokens, charged_micro_usd, corrected, open_until, session_id, attempt,
      scope_keys, reserved);
end $$;

revoke all on function budget_lock, budget_write from public;
grant execute on function budget_lock, budget_write to antiphon_metering;
revoke all on budget_balances, budget_reservations from public;
grant select, insert, update, delete on budget_balances, budget_reservations to antiphon_metering;
grant select on budget_balances, budget_reservations to antiphon_reader;
