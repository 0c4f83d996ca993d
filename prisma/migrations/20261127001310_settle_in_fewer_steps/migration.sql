-- As before (20261127001300_settle_with_answer), with less work for each call and less under the lock of the log: ends of
-- calls are found in one pass, and the rows of the ledger are written before the append. If the log then refuses a request
-- whose call was settled, the whole statement fails, and the caller sends the batch again without extensions.
drop function antiphon_append_one;
create or replace function antiphon_append_extended(
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
  data_lines constant text[] := string_to_array(p_data, e'\n');
  -- The end of a call in each request: its event, and its stream.
  ended integer[];
  ended_stream text[];
  head_hash bytea;
  data jsonb;
  input bigint;
  output bigint;
  micro_usd bigint;
  -- One element for each call that is settled.
  c_request integer[] := '{}';
  c_workspace text[] := '{}';
  c_id uuid[] := '{}';
  c_event_id uuid[] := '{}';
  c_reserved jsonb[] := '{}';
  c_tokens bigint[] := '{}';
  c_micro_usd bigint[] := '{}';
  c_data text[] := '{}';
  c_metadata text[] := '{}';
  c_hash bytea[] := '{}';
begin
  -- A repeated batch appends nothing new, and its charges are in the log or left to metering.
  if not p_careful then
    for i in 1 .. cardinality(p_stream) loop
      for j in p_first[i] .. p_first[i] + p_count[i] - 1 loop
        if p_type[j] = 'ModelCallCompleted' then
          ended[p_request[i]] := j;
          ended_stream[p_request[i]] := p_stream[i];
        end if;
      end loop;
    end loop;

    for item in
      select a.request, a.workspace, (a.extension #>> '{settle,eventId}')::uuid as event_id, l.reservation_id as id, l.reserved
      from unnest(p_extension_request, p_extension_workspace, p_extension) as a (request, workspace, extension)
      join budget_lock('{}', '{}', p_extension_workspace,
        array(select (e #>> '{settle,reservationId}')::uuid from unnest(p_extension) e)) l
        on l.workspace = a.workspace and l.reservation_id = (a.extension #>> '{settle,reservationId}')::uuid
      where l.status = 'reserved' and l.stream_version = 1
    loop
      continue when ended_stream[item.request] is distinct from 'session-' || (item.reserved ->> 'sessionId');
      data := data_lines[ended[item.request]]::jsonb;
      continue when data ->> 'reservationId' is distinct from item.id::text
        or data ->> 'attempt' is distinct from item.reserved ->> 'attempt';
      input := data #>> '{usage,inputTokens}';
      output := data #>> '{usage,outputTokens}';
      -- Rounded up once over both sides, as costMicroUsd does.
      micro_usd := coalesce(div(input * (item.reserved #>> '{price,inputMicroUsdPerMtok}')::numeric
        + output * (item.reserved #>> '{price,outputMicroUsdPerMtok}')::numeric + 999999, 1000000), 0);
      continue when (input >= 0 and output >= 0 and input + output <= (item.reserved ->> 'tokens')::bigint
        and micro_usd <= (item.reserved ->> 'microUsd')::bigint) is not true;
      select h.hash into head_hash from stream_heads h
        where h.workspace = item.workspace and h.stream_id = 'budget-' || item.id and h.version = 1 for update;
      continue when not found;
      c_request := c_request || item.request;
      c_workspace := c_workspace || item.workspace;
      c_id := c_id || item.id;
      c_event_id := c_event_id || item.event_id;
      c_reserved := c_reserved || item.reserved;
      c_tokens := c_tokens || input + output;
      c_micro_usd := c_micro_usd || micro_usd;
      c_metadata := c_metadata || split_part(p_metadata, e'\n', ended[item.request]);
      -- RFC 8785 text: the keys are in order, and the numbers are whole.
      c_data := c_data || format('{"estimated":%s,"inputTokens":%s,"microUsd":%s,"outputTokens":%s,"reservationId":"%s","settledAt":"%s"}',
        (data #>> '{usage,estimated}')::boolean::text, input, micro_usd, output, item.id,
        to_char(clock_timestamp() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'));
      -- The hash of antiphon_append (docs/adr/0004).
      c_hash := c_hash || sha256(head_hash || convert_to(concat_ws(e'\n', 'budget-' || item.id, 2, item.event_id,
        'BudgetSettled', 1, c_data[cardinality(c_data)], c_metadata[cardinality(c_data)]), 'UTF8'));
    end loop;

    -- One change a scope: calls of a workspace share their day and month.
    if cardinality(c_id) > 0 then
      perform budget_write(array_agg(m.workspace), array_agg(m.key), array_agg(-m.bound_tokens), array_agg(m.tokens),
          array_agg(-m.bound_micro_usd), array_agg(m.micro_usd), array_agg(false), array_agg(null::uuid),
          c_workspace, c_id, array_fill('settled'::text, array[cardinality(c_id)]), array_fill(2::bigint, array[cardinality(c_id)]),
          c_tokens, c_micro_usd, array_fill(false, array[cardinality(c_id)]), array_fill(null::timestamptz, array[cardinality(c_id)]),
          '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}')
        from (
          select c_workspace[c] as workspace, s ->> 'key' as key, sum((c_reserved[c] ->> 'tokens')::bigint)::bigint as bound_tokens,
            sum(c_tokens[c])::bigint as tokens, sum((c_reserved[c] ->> 'microUsd')::bigint)::bigint as bound_micro_usd,
            sum(c_micro_usd[c])::bigint as micro_usd
          from generate_series(1, cardinality(c_id)) c, jsonb_array_elements(c_reserved[c] -> 'scopes') s
          group by 1, 2) m;
    end if;
  end if;

  select a.base, a.heads, a.outcomes, a.firsts, a.lasts, a.details into base, heads, outcomes, firsts, lasts, details
    from antiphon_append(p_careful, p_request, p_workspace, p_stream, p_expected, p_first, p_count, p_event_id, p_type,
      p_schema_version, p_data, p_metadata, p_fence_request, p_fence_workspace, p_fence_lease, p_fence_epoch,
      p_claim_request, p_claim_workspace, p_claim_scope, p_claim_key, p_claim_digest, p_claim_answer) a;
  if cardinality(c_id) = 0 then
    return;
  end if;

  -- The log is still locked, so the next positions are free.
  extensions := array_fill(null::jsonb, array[(select max(r) from unnest(p_request) r)]);
  for c in 1 .. cardinality(c_id) loop
    if outcomes[c_request[c]] is not null then
      raise exception 'the log refused a call that was settled' using errcode = 'serialization_failure';
    end if;
    extensions[c_request[c]] := jsonb_build_object('category', 'budget', 'settled', c_data[c]::jsonb);
  end loop;
  insert into events
    select (select e.position from events e order by e.position desc limit 1) + c, c_workspace[c], 'budget', 'budget-' || c_id[c], 2,
      c_event_id[c], 'BudgetSettled', 1, c_data[c]::jsonb, c_metadata[c]::jsonb, clock_timestamp(), c_hash[c]
    from generate_series(1, cardinality(c_id)) c;
  insert into stream_heads as h (workspace, stream_id, version, hash)
    select c_workspace[c], 'budget-' || c_id[c], 2, c_hash[c] from generate_series(1, cardinality(c_id)) c
    on conflict (workspace, stream_id) do update set version = excluded.version, hash = excluded.hash;
end $$;
