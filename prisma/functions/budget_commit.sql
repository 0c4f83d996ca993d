-- Writes the changes of a batch (as budget_write) and returns one row: false, the append that takes it need not look for
-- known event ids. Raises if a scope has no room or is frozen: nothing is written then.
-- `p_admits`: the batch reserves in this scope, whose limits follow (null for none).
-- Scopes come in the order of their keys, which is the order of their locks.
create or replace function budget_commit(
  p_workspace text[], p_key text[], p_reserved_tokens bigint[], p_settled_tokens bigint[], p_reserved_micro_usd bigint[],
  p_settled_micro_usd bigint[], p_admits boolean[], p_limit_tokens bigint[], p_limit_micro_usd bigint[],
  u_workspace text[], u_id uuid[], u_status text[], u_version bigint[], u_charged_tokens bigint[],
  u_charged_micro_usd bigint[], u_corrected boolean[], u_open_until timestamptz[],
  n_workspace text[], n_id uuid[], n_status text[], n_version bigint[], n_charged_tokens bigint[],
  n_charged_micro_usd bigint[], n_corrected boolean[], n_open_until timestamptz[],
  n_session_id uuid[], n_attempt integer[], n_scope_keys text[], n_reserved jsonb[]
) returns setof boolean
language plpgsql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
as $$
begin
  for i in 1 .. cardinality(p_key) loop
    if p_admits[i] then
      insert into budget_balances (workspace, scope_key) values (p_workspace[i], p_key[i]) on conflict do nothing;
    end if;
  end loop;
  for i in 1 .. cardinality(p_key) loop
    update budget_balances b set
      reserved_tokens = b.reserved_tokens + p_reserved_tokens[i],
      settled_tokens = b.settled_tokens + p_settled_tokens[i],
      reserved_micro_usd = b.reserved_micro_usd + p_reserved_micro_usd[i],
      settled_micro_usd = b.settled_micro_usd + p_settled_micro_usd[i]
    where b.workspace = p_workspace[i] and b.scope_key = p_key[i] and (not p_admits[i] or (
      (p_limit_tokens[i] is null
        or b.reserved_tokens + p_reserved_tokens[i] + b.settled_tokens + p_settled_tokens[i] <= p_limit_tokens[i])
      and (p_limit_micro_usd[i] is null
        or b.reserved_micro_usd + p_reserved_micro_usd[i] + b.settled_micro_usd + p_settled_micro_usd[i] <= p_limit_micro_usd[i])
      and (b.frozen_by is null or (p_limit_tokens[i] is null and p_limit_micro_usd[i] is null))));
    if not found then
      raise exception 'the balances do not allow the batch' using errcode = 'serialization_failure';
    end if;
  end loop;
  perform budget_write('{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', u_workspace, u_id, u_status, u_version,
    u_charged_tokens, u_charged_micro_usd, u_corrected, u_open_until, n_workspace, n_id, n_status, n_version,
    n_charged_tokens, n_charged_micro_usd, n_corrected, n_open_until, n_session_id, n_attempt, n_scope_keys, n_reserved);
  return next false;
end $$;
