-- One statement for a batch that was decided on remembered balances. Decision: docs/adr/0045.

-- Writes what a batch changed (as budget_write, whose parameters follow), if the balances that it was decided on are
-- still what they were: `e_…`, in the order of their keys, empty ones made if they are not there. Answers one row then
-- (false: the append that takes it need not look for known event ids), and none, having written nothing, otherwise.
-- Locks go as in budget_lock: inserts first, then rows, both in the order of their keys.
create function budget_commit(
  e_workspace text[], e_key text[], e_reserved_tokens bigint[], e_settled_tokens bigint[], e_reserved_micro_usd bigint[],
  e_settled_micro_usd bigint[], e_frozen_by uuid[],
  p_workspace text[], p_key text[], p_reserved_tokens bigint[], p_settled_tokens bigint[], p_reserved_micro_usd bigint[],
  p_settled_micro_usd bigint[], p_marks boolean[], p_frozen_by uuid[],
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
declare
  row record;
begin
  for i in 1 .. cardinality(e_key) loop
    if e_reserved_tokens[i] = 0 and e_settled_tokens[i] = 0 and e_reserved_micro_usd[i] = 0 and e_settled_micro_usd[i] = 0 then
      insert into budget_balances (workspace, scope_key) values (e_workspace[i], e_key[i]) on conflict do nothing;
    end if;
  end loop;
  for i in 1 .. cardinality(e_key) loop
    select b.reserved_tokens, b.settled_tokens, b.reserved_micro_usd, b.settled_micro_usd, b.frozen_by into row
      from budget_balances b where b.workspace = e_workspace[i] and b.scope_key = e_key[i] for update;
    if row.reserved_tokens is distinct from e_reserved_tokens[i] or row.settled_tokens is distinct from e_settled_tokens[i]
      or row.reserved_micro_usd is distinct from e_reserved_micro_usd[i]
      or row.settled_micro_usd is distinct from e_settled_micro_usd[i] or row.frozen_by is distinct from e_frozen_by[i] then
      return;
    end if;
  end loop;
  perform budget_write(p_workspace, p_key, p_reserved_tokens, p_settled_tokens, p_reserved_micro_usd, p_settled_micro_usd,
    p_marks, p_frozen_by, u_workspace, u_id, u_status, u_version, u_charged_tokens, u_charged_micro_usd, u_corrected,
    u_open_until, n_workspace, n_id, n_status, n_version, n_charged_tokens, n_charged_micro_usd, n_corrected, n_open_until,
    n_session_id, n_attempt, n_scope_keys, n_reserved);
  return next false;
end $$;

-- Undoes the statement that it stands in, unless the log took every request of its append (then there are no outcomes).
create function budget_appended(p_outcomes text[]) returns boolean language plpgsql immutable as $$
begin
  if p_outcomes is not null then
    raise exception 'the log refused a part of the batch' using errcode = 'serialization_failure';
  end if;
  return true;
end $$;

revoke all on function budget_commit, budget_appended from public;
grant execute on function budget_commit, budget_appended to antiphon_metering;
