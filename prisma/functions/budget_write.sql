-- Writes the changes of a batch: differences of balances (one for each scope), changed reservations, new reservations.
create or replace function budget_write(
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
