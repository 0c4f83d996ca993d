-- Charges in the commit that ends the call, and admissions that hold for any number of writers. Flow: docs/flows/budget.md.

-- Metering's commit. Before, it compared each balance with the one that its batch was decided on. Now that the agent's
-- commits move balances as well, it requires what the rule requires: settled + reserved <= limit in each scope after the
-- batch, and no frozen scope with a limit. A batch releases before it reserves, so its last sum is its largest.
drop function budget_commit;

-- Writes the changes of a batch (as budget_write) and returns one row: false, the append that takes it need not look for
-- known event ids. Raises if a scope has no room or is frozen: nothing is written then.
-- `p_admits`: the batch reserves in this scope, whose limits follow (null for none).
-- Scopes come in the order of their keys, which is the order of their locks.
create function budget_commit(
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

revoke all on function budget_commit from public;
grant execute on function budget_commit to antiphon_metering;

-- Appends one event to a stream whose head this transaction has locked, after its antiphon_append: the log is still locked,
-- so the position is the next one. The hash is that of antiphon_append (docs/adr/0004). Not for any service to call.
create function antiphon_append_one(
  p_workspace text, p_stream text, p_version bigint, p_head_hash bytea, p_event_id uuid, p_type text, p_data text, p_metadata text
) returns void
language plpgsql
as $$
declare
  event_hash constant bytea := sha256(p_head_hash || convert_to(
    concat_ws(e'\n', p_stream, p_version, p_event_id, p_type, 1, p_data, p_metadata), 'UTF8'));
begin
  insert into events
    select coalesce((select e.position from events e order by e.position desc limit 1), h.base_position) + 1,
      p_workspace, split_part(p_stream, '-', 1), p_stream, p_version, p_event_id, p_type, 1, p_data::jsonb, p_metadata::jsonb,
      clock_timestamp(), event_hash
    from log_head h where h.id = 1;
  update stream_heads h set version = p_version, hash = event_hash where h.workspace = p_workspace and h.stream_id = p_stream;
end $$;

-- antiphon_append for batches in which the driver of a session ends a model call. A request of `p_extension_request` names
-- its reservation: `{"settle": {"reservationId", "eventId"}}`. Its charge is committed with the end of the call, as metering
-- would commit it, if all of this holds:
--   the request is appended, and has the ModelCallCompleted of that reservation, session and attempt;
--   the reservation is open, and nothing but BudgetReserved is in its stream;
--   the charge, which is computed here from the tokens of that event and the prices of the reservation, is within its bound.
-- Otherwise the request is appended alone and metering settles from the log. So the role can neither choose a charge, nor
-- append any other event of a budget. `extensions` has what was charged, one element a request; null if nothing was.
-- Locks: balances in the order of their keys, heads of the reservations, then those of antiphon_append: leases, heads, log.
-- Each writer of a reservation locks its balances first, so that what is read under them stays true until the commit.
create function antiphon_append_extended(
  p_careful boolean,
  p_request integer[], p_workspace text[], p_stream text[], p_expected bigint[], p_first integer[], p_count integer[],
  p_event_id uuid[], p_type text[], p_schema_version integer[], p_data text, p_metadata text,
  p_fence_request integer[], p_fence_workspace text[], p_fence_lease text[], p_fence_epoch bigint[],
  p_claim_request integer[], p_claim_workspace text[], p_claim_scope text[], p_claim_key text[], p_claim_digest text[],
  p_claim_answer text[],
  p_extension_request integer[], p_extension_workspace text[], p_extension jsonb[],
  out base bigint, out heads bigint[], out outcomes text[], out firsts bigint[], out lasts bigint[], out details jsonb[],
  out extensions jsonb[]
)
language plpgsql security definer
set search_path = public, pg_temp
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
set jit = off
as $$
declare
  item record;
  charge record;
  head_hash bytea;
  -- One element for each call that can be settled.
  c_request integer[] := '{}';
  c_workspace text[] := '{}';
  c_id uuid[] := '{}';
  c_event_id uuid[] := '{}';
  c_head_hash bytea[] := '{}';
  c_tokens bigint[] := '{}';
  c_micro_usd bigint[] := '{}';
  c_data text[] := '{}';
  c_metadata text[] := '{}';
  -- Changes of balances.
  m_workspace text[] := '{}';
  m_key text[] := '{}';
  m_reserved_tokens bigint[] := '{}';
  m_settled_tokens bigint[] := '{}';
  m_reserved_micro_usd bigint[] := '{}';
  m_settled_micro_usd bigint[] := '{}';
begin
  -- A repeated batch appends nothing new, and its charges are in the log or left to metering.
  if not p_careful then
    for item in
      select a.request, a.workspace, (a.extension #>> '{settle,eventId}')::uuid as event_id, l.reservation_id as id, l.reserved
      from unnest(p_extension_request, p_extension_workspace, p_extension) as a (request, workspace, extension)
      join budget_lock('{}', '{}', p_extension_workspace,
        array(select (e #>> '{settle,reservationId}')::uuid from unnest(p_extension) e)) l
        on l.workspace = a.workspace and l.reservation_id = (a.extension #>> '{settle,reservationId}')::uuid
      where l.status = 'reserved' and l.stream_version = 1
    loop
      select h.hash into head_hash from stream_heads h
        where h.workspace = item.workspace and h.stream_id = 'budget-' || item.id and h.version = 1 for update;
      continue when not found;
      -- The end of the call in the request, and its charge: rounded up once over both sides, as costMicroUsd does.
      select u.input, u.output, u.estimated, u.input + u.output as tokens, split_part(p_metadata, e'\n', j) as metadata,
          coalesce(div(u.input * (item.reserved #>> '{price,inputMicroUsdPerMtok}')::numeric
            + u.output * (item.reserved #>> '{price,outputMicroUsdPerMtok}')::numeric + 999999, 1000000), 0)::bigint as micro_usd
        into charge
        from generate_series(1, cardinality(p_stream)) i,
          generate_series(p_first[i], p_first[i] + p_count[i] - 1) j,
          lateral (select split_part(p_data, e'\n', j)::jsonb as data offset 0) d,
          lateral (select (d.data #>> '{usage,inputTokens}')::bigint as input, (d.data #>> '{usage,outputTokens}')::bigint as output,
            (d.data #>> '{usage,estimated}')::boolean as estimated offset 0) u
        where p_request[i] = item.request and p_workspace[i] = item.workspace
          and p_stream[i] = 'session-' || (item.reserved ->> 'sessionId') and p_type[j] = 'ModelCallCompleted'
          and d.data ->> 'reservationId' = item.id::text and d.data ->> 'attempt' = item.reserved ->> 'attempt'
          and least(u.input, u.output) >= 0;
      continue when not found or charge.tokens > (item.reserved ->> 'tokens')::bigint
        or charge.micro_usd > (item.reserved ->> 'microUsd')::bigint;
      c_request := c_request || item.request;
      c_workspace := c_workspace || item.workspace;
      c_id := c_id || item.id;
      c_event_id := c_event_id || item.event_id;
      c_head_hash := c_head_hash || head_hash;
      c_tokens := c_tokens || charge.tokens;
      c_micro_usd := c_micro_usd || charge.micro_usd;
      c_metadata := c_metadata || charge.metadata;
      -- RFC 8785 text: the keys are in order, and the numbers are whole.
      c_data := c_data || format('{"estimated":%s,"inputTokens":%s,"microUsd":%s,"outputTokens":%s,"reservationId":"%s","settledAt":"%s"}',
        charge.estimated::text, charge.input, charge.micro_usd, charge.output, item.id,
        to_char(clock_timestamp() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'));
    end loop;
  end if;

  select a.base, a.heads, a.outcomes, a.firsts, a.lasts, a.details into base, heads, outcomes, firsts, lasts, details
    from antiphon_append(p_careful, p_request, p_workspace, p_stream, p_expected, p_first, p_count, p_event_id, p_type,
      p_schema_version, p_data, p_metadata, p_fence_request, p_fence_workspace, p_fence_lease, p_fence_epoch,
      p_claim_request, p_claim_workspace, p_claim_scope, p_claim_key, p_claim_digest, p_claim_answer) a;

  for i in 1 .. cardinality(c_id) loop
    continue when outcomes[c_request[i]] is not null;
    perform antiphon_append_one(c_workspace[i], 'budget-' || c_id[i], 2, c_head_hash[i], c_event_id[i], 'BudgetSettled',
      c_data[i], c_metadata[i]);
    update budget_reservations r set status = 'settled', stream_version = 2, charged_tokens = c_tokens[i],
      charged_micro_usd = c_micro_usd[i], open_until = null
      where r.workspace = c_workspace[i] and r.reservation_id = c_id[i]
      returning r.scope_keys, (r.reserved ->> 'tokens')::bigint as tokens, (r.reserved ->> 'microUsd')::bigint as micro_usd into item;
    for key in 1 .. cardinality(item.scope_keys) loop
      m_workspace := m_workspace || c_workspace[i];
      m_key := m_key || item.scope_keys[key];
      m_reserved_tokens := m_reserved_tokens || -item.tokens;
      m_settled_tokens := m_settled_tokens || c_tokens[i];
      m_reserved_micro_usd := m_reserved_micro_usd || -item.micro_usd;
      m_settled_micro_usd := m_settled_micro_usd || c_micro_usd[i];
    end loop;
    extensions := coalesce(extensions, array_fill(null::jsonb, array[(select max(r) from unnest(p_request) r)]));
    extensions[c_request[i]] := jsonb_build_object('category', 'budget', 'settled', c_data[i]::jsonb);
  end loop;

  -- One update a scope: calls of a workspace share their day and month.
  if cardinality(m_key) > 0 then
    update budget_balances b set
      reserved_tokens = b.reserved_tokens + m.reserved_tokens, settled_tokens = b.settled_tokens + m.settled_tokens,
      reserved_micro_usd = b.reserved_micro_usd + m.reserved_micro_usd, settled_micro_usd = b.settled_micro_usd + m.settled_micro_usd
    from (
      select u.workspace, u.key, sum(u.reserved_tokens) as reserved_tokens, sum(u.settled_tokens) as settled_tokens,
        sum(u.reserved_micro_usd) as reserved_micro_usd, sum(u.settled_micro_usd) as settled_micro_usd
      from unnest(m_workspace, m_key, m_reserved_tokens, m_settled_tokens, m_reserved_micro_usd, m_settled_micro_usd)
        as u (workspace, key, reserved_tokens, settled_tokens, reserved_micro_usd, settled_micro_usd)
      group by u.workspace, u.key) m
    where b.workspace = m.workspace and b.scope_key = m.key;
  end if;
end $$;

revoke all on function antiphon_append_one, antiphon_append_extended from public;
grant execute on function antiphon_append_extended to antiphon_agent;
