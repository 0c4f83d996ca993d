-- antiphon_append for batches in which the driver of a session begins or ends a model call. Metering owns this function.
-- Decision: docs/adr/0162.
-- A request with `{"reserve": {"reservationId", "eventId", "inputBound", "maxOutputTokens", "lifetimeMs", "agentId", "agents",
-- "sessionKey", "caller"}}` gets BudgetReserved in the stream of the reservation if all of this holds:
--   the request is fenced and appended, and has the ModelCallStarted of that reservation;
--   no such reservation exists, and the limits and the price are known (budget_rules);
--   settled + reserved + bound <= limit in each scope, in tokens and money, and no limited scope is frozen. The bound counts
--   each input token at the dearest of its prices. A call that can cost nothing passes each limit of money.
-- A request with `{"settle": {"reservationId", "eventId"}}` gets BudgetSettled if all of this holds:
--   the request is appended, and has the ModelCallCompleted of that reservation, session and attempt;
--   the reservation is open, and its stream has nothing but BudgetReserved;
--   the charge, computed here from the tokens of that event and the prices of the reservation, is within its bound.
-- Otherwise the request is appended alone, and metering decides: only metering refuses a call. The session, the turn, the
-- attempt and the model are those of the event. Limits, price, amounts and times are those of the database. So the role can
-- neither choose a charge nor append any other event of a budget.
-- Returns the columns of antiphon_append and `extensions`, the events of the budget, one element a request; null without any.
-- If the log refuses a request whose call was settled or reserved, the whole statement fails, and the caller sends the batch
-- again without extensions.
-- Locks: balances in the order of their keys, heads of the reservations, then the locks of antiphon_append: lease, heads, log.
-- Each writer of a reservation locks its balances first, so that rows that were read under them stay true until the commit.
-- Balances are locked and written here by the rules of budget_lock and budget_write, which metering uses. Updates name one row
-- each: with these settings, a join of an update would read the whole table.
-- The usual batch (one call of one request on one stream that exists, under one fence) is appended here, in one insert.
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
  ask jsonb;
  rules budget_rules;
  present constant timestamptz := date_trunc('milliseconds', clock_timestamp());
  data_lines constant text[] := string_to_array(p_data, e'\n');
  metadata_lines constant text[] := string_to_array(p_metadata, e'\n');
  -- The start and the end of a call in each request: its event, and its stream.
  begun integer[];
  begun_stream text[];
  ended integer[];
  ended_stream text[];
  head_hash bytea;
  data jsonb;
  input bigint;
  -- Parts of the input that a prompt cache read, wrote, and wrote for an hour.
  cached bigint;
  written bigint;
  hour bigint;
  output bigint;
  price jsonb;
  tokens bigint;
  micro_usd bigint;
  spot integer;
  fits boolean;
  usual boolean := false;
  event_hash bytea[];
  ignored text;
  agents_text text;
  -- Data of the event of a batch with one call.
  added jsonb;
  asks_settle boolean := false;
  -- One element for each call that asks for a reservation, with its scopes from `first` to `last`.
  a_request integer[] := '{}';
  a_workspace text[] := '{}';
  a_ask jsonb[] := '{}';
  a_data jsonb[] := '{}';
  -- JSON text of the price.
  a_price text[] := '{}';
  a_tokens bigint[] := '{}';
  a_micro_usd bigint[] := '{}';
  a_first integer[] := '{}';
  a_last integer[] := '{}';
  -- JSON text of the scopes.
  a_scopes text[] := '{}';
  s_workspace text[] := '{}';
  s_key text[] := '{}';
  s_limit_tokens bigint[] := '{}';
  s_limit_micro_usd bigint[] := '{}';
  -- Scopes of the reservations to settle.
  r_workspace text[] := '{}';
  r_key text[] := '{}';
  -- One element for each locked balance.
  b_name text[] := '{}';
  b_tokens bigint[] := '{}';
  b_micro_usd bigint[] := '{}';
  b_frozen boolean[] := '{}';
  -- One element for each call that is settled, then for each that is reserved.
  settled integer := 0;
  c_request integer[] := '{}';
  c_workspace text[] := '{}';
  c_id uuid[] := '{}';
  c_event_id uuid[] := '{}';
  c_scopes text[] := '{}';
  c_bound_tokens bigint[] := '{}';
  c_bound_micro_usd bigint[] := '{}';
  c_tokens bigint[] := '{}';
  c_micro_usd bigint[] := '{}';
  c_data text[] := '{}';
  c_metadata text[] := '{}';
  c_hash bytea[] := '{}';
begin
  -- A repeated batch appends nothing new: what it settled or reserved is in the log or left to metering.
  if not p_careful then
    for i in 1 .. cardinality(p_stream) loop
      for j in p_first[i] .. p_first[i] + p_count[i] - 1 loop
        if p_type[j] = 'ModelCallCompleted' then
          ended[p_request[i]] := j;
          ended_stream[p_request[i]] := p_stream[i];
        elsif p_type[j] = 'ModelCallStarted' then
          begun[p_request[i]] := j;
          begun_stream[p_request[i]] := p_stream[i];
        end if;
      end loop;
    end loop;

    for x in 1 .. cardinality(p_extension) loop
      asks_settle := asks_settle or p_extension[x] ? 'settle';
      ask := p_extension[x] -> 'reserve';
      continue when ask is null;
      continue when begun[p_extension_request[x]] is null or array_position(p_fence_request, p_extension_request[x]) is null;
      data := data_lines[begun[p_extension_request[x]]]::jsonb;
      input := ask ->> 'inputBound';
      output := ask ->> 'maxOutputTokens';
      continue when (data ->> 'reservationId' = ask ->> 'reservationId'
        and (ask ->> 'reservationId')::uuid::text = ask ->> 'reservationId' and begun_stream[p_extension_request[x]] like 'session-%'
        and input between 0 and 1000000000 and output between 1 and 1000000000) is not true;
      select * into rules from budget_rules r where r.workspace = p_extension_workspace[x] and r.provider = data ->> 'provider'
        and r.model = data ->> 'model' and r.valid_until > present;
      continue when not found;
      a_first := a_first || cardinality(s_key) + 1;
      select s_workspace || array_agg(p_extension_workspace[x]), s_key || array_agg(s.key), s_limit_tokens || array_agg(s.limit_tokens),
          s_limit_micro_usd || array_agg(s.limit_micro_usd),
          a_scopes || string_agg(format('{"key":%s,"kind":"%s","limitMicroUsd":%s,"limitTokens":%s}', to_json(s.key), s.kind,
            coalesce(s.limit_micro_usd::text, 'null'), coalesce(s.limit_tokens::text, 'null')), ',')
        into s_workspace, s_key, s_limit_tokens, s_limit_micro_usd, a_scopes
        from antiphon_scopes_of_call(p_extension_workspace[x], substr(begun_stream[p_extension_request[x]], 9),
          coalesce(ask -> 'agents', jsonb_build_array(ask -> 'agentId')), rules, present) s;
      a_last := a_last || cardinality(s_key);
      a_request := a_request || p_extension_request[x];
      a_workspace := a_workspace || p_extension_workspace[x];
      a_ask := a_ask || ask;
      a_data := a_data || data;
      a_price := a_price || case when rules.input_price is null then 'null' else concat('{',
        '"cacheReadMicroUsdPerMtok":' || rules.cache_read_price || ',',
        '"cacheWrite1hMicroUsdPerMtok":' || rules.cache_write_1h_price || ',',
        '"cacheWriteMicroUsdPerMtok":' || rules.cache_write_price || ',',
        '"inputMicroUsdPerMtok":' || rules.input_price, ',"outputMicroUsdPerMtok":' || rules.output_price, '}') end;
      a_tokens := a_tokens || input + output;
      -- Rounded up once over both sides, as boundMicroUsd does.
      a_micro_usd := a_micro_usd || coalesce(div(input * greatest(rules.input_price, rules.cache_read_price,
          rules.cache_write_price, rules.cache_write_1h_price)::numeric
        + output * rules.output_price::numeric + 999999, 1000000), 0)::bigint;
    end loop;

    -- Locks the balances of all calls, in the order and by the rules of budget_lock.
    if asks_settle then
      select coalesce(array_agg(r.workspace), '{}'), coalesce(array_agg(r.key), '{}') into r_workspace, r_key
      from unnest(p_extension_workspace, p_extension) as e (workspace, extension),
        lateral (
          select r.workspace, unnest(r.scope_keys) as key from budget_reservations r
          where r.workspace = e.workspace and r.reservation_id = (e.extension #>> '{settle,reservationId}')::uuid offset 0) r;
    end if;
    if cardinality(s_key) > 0 then
      insert into budget_balances (workspace, scope_key)
        select w.workspace, w.key from unnest(s_workspace, s_key) as w (workspace, key)
        order by 1, 2 on conflict do nothing;
    end if;
    for item in
      select b.workspace, b.scope_key, b.reserved_tokens, b.settled_tokens, b.reserved_micro_usd, b.settled_micro_usd, b.frozen_by
      from (
        select w.workspace, w.key from unnest(s_workspace || r_workspace, s_key || r_key) as w (workspace, key)
        group by 1, 2 order by 1, 2) w,
      lateral (select * from budget_balances b where b.workspace = w.workspace and b.scope_key = w.key for update) b
    loop
      b_name := b_name || (item.workspace || ' ' || item.scope_key);
      b_tokens := b_tokens || item.settled_tokens + item.reserved_tokens;
      b_micro_usd := b_micro_usd || item.settled_micro_usd + item.reserved_micro_usd;
      b_frozen := b_frozen || (item.frozen_by is not null);
    end loop;

    -- Reservations are read under the locks of their balances.
    if asks_settle then
      for item in
        select e.request, r.*, (e.extension #>> '{settle,eventId}')::uuid as event_id
        from unnest(p_extension_request, p_extension_workspace, p_extension) as e (request, workspace, extension),
          lateral (
            select r.workspace, r.reservation_id, r.status, r.stream_version, r.reserved, r.scope_keys from budget_reservations r
            where r.workspace = e.workspace and r.reservation_id = (e.extension #>> '{settle,reservationId}')::uuid offset 0) r
      loop
        continue when (item.status = 'reserved' and item.stream_version = 1) is not true;
        continue when ended_stream[item.request] is distinct from 'session-' || (item.reserved ->> 'sessionId');
        data := data_lines[ended[item.request]]::jsonb;
        continue when data ->> 'reservationId' is distinct from item.reservation_id::text
          or data ->> 'attempt' is distinct from item.reserved ->> 'attempt';
        input := data #>> '{usage,inputTokens}';
        output := data #>> '{usage,outputTokens}';
        cached := coalesce((data #>> '{usage,cacheReadTokens}')::bigint, 0);
        written := coalesce((data #>> '{usage,cacheWriteTokens}')::bigint, 0);
        hour := coalesce((data #>> '{usage,cacheWrite1hTokens}')::bigint, 0);
        price := item.reserved -> 'price';
        -- Rounded as costMicroUsd does: to the nearest with cached input, else up.
        micro_usd := coalesce(div((input - cached - written) * (price ->> 'inputMicroUsdPerMtok')::numeric
          + cached * coalesce(price ->> 'cacheReadMicroUsdPerMtok', price ->> 'inputMicroUsdPerMtok')::numeric
          + (written - hour) * coalesce(price ->> 'cacheWriteMicroUsdPerMtok', price ->> 'inputMicroUsdPerMtok')::numeric
          + hour * coalesce(price ->> 'cacheWrite1hMicroUsdPerMtok', price ->> 'inputMicroUsdPerMtok')::numeric
          + output * (price ->> 'outputMicroUsdPerMtok')::numeric
          + case when cached + written > 0 then 500000 else 999999 end, 1000000), 0);
        continue when (input >= 0 and output >= 0 and cached >= 0 and hour >= 0 and written >= hour
          and input >= cached + written and input + output <= (item.reserved ->> 'tokens')::bigint
          and micro_usd <= (item.reserved ->> 'microUsd')::bigint) is not true;
        select h.hash into head_hash from stream_heads h
          where h.workspace = item.workspace and h.stream_id = 'budget-' || item.reservation_id and h.version = 1 for update;
        continue when not found;
        settled := settled + 1;
        c_request := c_request || item.request;
        c_workspace := c_workspace || item.workspace;
        c_id := c_id || item.reservation_id;
        c_event_id := c_event_id || item.event_id;
        c_scopes := c_scopes || array_to_string(item.scope_keys, ' ');
        c_bound_tokens := c_bound_tokens || (item.reserved ->> 'tokens')::bigint;
        c_bound_micro_usd := c_bound_micro_usd || (item.reserved ->> 'microUsd')::bigint;
        c_tokens := c_tokens || input + output;
        c_micro_usd := c_micro_usd || micro_usd;
        c_metadata := c_metadata || metadata_lines[ended[item.request]];
        -- RFC 8785 text: the keys are in order, and the numbers are whole.
        c_data := c_data || format('{%s"estimated":%s,"inputTokens":%s,"microUsd":%s,"outputTokens":%s,"reservationId":"%s","settledAt":"%s"}',
          concat('"cacheReadTokens":' || nullif(cached, 0) || ',', '"cacheWrite1hTokens":' || nullif(hour, 0) || ',',
            '"cacheWriteTokens":' || nullif(written, 0) || ','),
          (data #>> '{usage,estimated}')::boolean::text, input, micro_usd, output, item.reservation_id,
          to_char(clock_timestamp() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'));
        -- The hash of antiphon_append (docs/adr/0004).
        c_hash := c_hash || sha256(head_hash || convert_to(concat_ws(e'\n', 'budget-' || item.reservation_id, 2, item.event_id,
          'BudgetSettled', 1, c_data[settled], c_metadata[settled]), 'UTF8'));
      end loop;
    end if;

    -- Each admission is decided on what the earlier ones of the batch have left.
    for a in 1 .. cardinality(a_request) loop
      ask := a_ask[a];
      data := a_data[a];
      tokens := a_tokens[a];
      micro_usd := a_micro_usd[a];
      fits := true;
      for s in a_first[a] .. a_last[a] loop
        spot := array_position(b_name, s_workspace[s] || ' ' || s_key[s]);
        fits := fits and (spot is not null
          and (s_limit_tokens[s] is null or b_tokens[spot] + tokens <= s_limit_tokens[s])
          and (s_limit_micro_usd[s] is null
            or (a_price[a] <> 'null' and (micro_usd = 0 or b_micro_usd[spot] + micro_usd <= s_limit_micro_usd[s])))
          and (not b_frozen[spot] or (s_limit_tokens[s] is null
            and (s_limit_micro_usd[s] is null or (a_price[a] <> 'null' and micro_usd = 0))))) is true;
      end loop;
      continue when not fits;
      agents_text := '';
      if jsonb_array_length(ask -> 'agents') > 1 then
        select format('"agents":[%s],', string_agg(l.x::text, ',' order by l.place)) into agents_text
          from jsonb_array_elements(ask -> 'agents') with ordinality l (x, place);
      end if;
      c_data := c_data || (
        -- RFC 8785 text: the keys are in order, and the numbers are whole.
        format('{"agentId":%s,', ask -> 'agentId')
        || agents_text
        || format('"attempt":%s,', data -> 'attempt')
        || case when ask ? 'caller' then format('"caller":%s,', ask -> 'caller') else '' end
        || format('"expiresAt":"%s","inputBound":%s,"microUsd":%s,"model":%s,"outputBound":%s,"price":%s,"provider":%s,',
          to_char((present + (ask ->> 'lifetimeMs')::bigint * interval '1 millisecond') at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
          (ask ->> 'inputBound')::bigint, micro_usd, data -> 'model', (ask ->> 'maxOutputTokens')::bigint,
          a_price[a], data -> 'provider')
        || format('"reservationId":%s,"reservedAt":"%s","scopes":[%s],', data -> 'reservationId',
          to_char(present at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
          a_scopes[a])
        || format('"sessionId":"%s","sessionKey":%s,"tokens":%s,"turnId":%s}', substr(begun_stream[a_request[a]], 9),
          ask -> 'sessionKey', tokens, data -> 'turnId'));
      c_metadata := c_metadata || metadata_lines[begun[a_request[a]]];
      spot := cardinality(c_id) + 1;
      head_hash := sha256(sha256(convert_to('antiphon-log-1' || chr(10) || a_workspace[a], 'UTF8')) || convert_to(
        concat_ws(e'\n', 'budget-' || (ask ->> 'reservationId'), 1, ask ->> 'eventId', 'BudgetReserved', 1, c_data[spot],
          c_metadata[spot]), 'UTF8'));
      -- Metering writes such a head under the same balances.
      insert into stream_heads (workspace, stream_id, version, hash)
        values (a_workspace[a], 'budget-' || (ask ->> 'reservationId'), 1, head_hash) on conflict do nothing;
      if not found then
        c_data := c_data[1:spot - 1];
        c_metadata := c_metadata[1:spot - 1];
        continue;
      end if;
      c_request := c_request || a_request[a];
      c_workspace := c_workspace || a_workspace[a];
      c_id := c_id || (ask ->> 'reservationId')::uuid;
      c_event_id := c_event_id || (ask ->> 'eventId')::uuid;
      c_scopes := c_scopes || array_to_string(s_key[a_first[a]:a_last[a]], ' ');
      c_bound_tokens := c_bound_tokens || tokens;
      c_bound_micro_usd := c_bound_micro_usd || micro_usd;
      c_tokens := c_tokens || tokens;
      c_micro_usd := c_micro_usd || micro_usd;
      c_hash := c_hash || head_hash;
      continue when a = cardinality(a_request);
      for s in a_first[a] .. a_last[a] loop
        spot := array_position(b_name, s_workspace[s] || ' ' || s_key[s]);
        b_tokens[spot] := b_tokens[spot] + tokens;
        b_micro_usd[spot] := b_micro_usd[spot] + micro_usd;
      end loop;
    end loop;

    -- One change a scope: calls of a workspace share their day and month.
    if cardinality(c_id) = 1 then
      added := c_data[1]::jsonb;
      update budget_balances b set
        reserved_tokens = b.reserved_tokens + case settled when 1 then -c_bound_tokens[1] else c_bound_tokens[1] end,
        settled_tokens = b.settled_tokens + case settled when 1 then c_tokens[1] else 0 end,
        reserved_micro_usd = b.reserved_micro_usd + case settled when 1 then -c_bound_micro_usd[1] else c_bound_micro_usd[1] end,
        settled_micro_usd = b.settled_micro_usd + case settled when 1 then c_micro_usd[1] else 0 end
      where b.workspace = c_workspace[1] and b.scope_key = any (string_to_array(c_scopes[1], ' '));
    elsif cardinality(c_id) > 1 then
      for item in
        select c_workspace[c] as workspace, k.key,
          sum(case when c <= settled then -c_bound_tokens[c] else c_bound_tokens[c] end)::bigint as reserved_tokens,
          sum(case when c <= settled then c_tokens[c] else 0 end)::bigint as settled_tokens,
          sum(case when c <= settled then -c_bound_micro_usd[c] else c_bound_micro_usd[c] end)::bigint as reserved_micro_usd,
          sum(case when c <= settled then c_micro_usd[c] else 0 end)::bigint as settled_micro_usd
        from generate_series(1, cardinality(c_id)) c, unnest(string_to_array(c_scopes[c], ' ')) as k (key)
        group by 1, 2
      loop
        update budget_balances b set
          reserved_tokens = b.reserved_tokens + item.reserved_tokens, settled_tokens = b.settled_tokens + item.settled_tokens,
          reserved_micro_usd = b.reserved_micro_usd + item.reserved_micro_usd,
          settled_micro_usd = b.settled_micro_usd + item.settled_micro_usd
        where b.workspace = item.workspace and b.scope_key = item.key;
      end loop;
    end if;
    if cardinality(c_id) > 0 then
      for c in 1 .. settled loop
        update budget_reservations r set status = 'settled', stream_version = 2, charged_tokens = c_tokens[c],
          charged_micro_usd = c_micro_usd[c], corrected = false, open_until = null
        where r.workspace = c_workspace[c] and r.reservation_id = c_id[c];
      end loop;
      if cardinality(c_id) = 1 and settled = 0 then
        insert into budget_reservations (workspace, reservation_id, status, stream_version, charged_tokens, charged_micro_usd,
          corrected, open_until, session_id, attempt, scope_keys, reserved)
        values (c_workspace[1], c_id[1], 'reserved', 1, 0, 0, false, (added ->> 'expiresAt')::timestamptz,
          (added ->> 'sessionId')::uuid, (added ->> 'attempt')::integer, string_to_array(c_scopes[1], ' '), added);
      elsif cardinality(c_id) > settled then
        insert into budget_reservations (workspace, reservation_id, status, stream_version, charged_tokens, charged_micro_usd,
          corrected, open_until, session_id, attempt, scope_keys, reserved)
        select c_workspace[c], c_id[c], 'reserved', 1, 0, 0, false, (d.reserved ->> 'expiresAt')::timestamptz,
          (d.reserved ->> 'sessionId')::uuid, (d.reserved ->> 'attempt')::integer, string_to_array(c_scopes[c], ' '), d.reserved
        from generate_series(settled + 1, cardinality(c_id)) c, lateral (select c_data[c]::jsonb as reserved offset 0) d;
      end if;
    end if;
  end if;

  -- The usual batch: one request on one stream that exists, with one call. It is appended here, by the rules and in the order
  -- of locks of antiphon_append, with the event of the call in the same statement. Other batches and refusals take the
  -- general way, under the same locks.
  if cardinality(c_id) = 1 and p_expected[1] > 0 and p_count[1] > 0 and 0 = all (p_count[2:]) and p_request[1] = all (p_request)
      and cardinality(p_fence_request) = 1 and p_claim_request is null
      and current_setting('transaction_isolation') = 'read committed'
      and current_setting('antiphon.appended', true) is distinct from 'yes'
  then
    perform from leases l where l.workspace = p_fence_workspace[1] and l.name = p_fence_lease[1]
      and l.epoch = p_fence_epoch[1] and l.owner is not null for share;
    if found then
      select h.hash into head_hash from stream_heads h
        where h.workspace = p_workspace[1] and h.stream_id = p_stream[1] and h.version = p_expected[1] for update;
      usual := found and antiphon_owns(split_part(p_stream[1], '-', 1));
    end if;
    if usual then
      for j in 1 .. p_count[1] loop
        head_hash := sha256(head_hash || convert_to(concat_ws(e'\n', p_stream[1], p_expected[1] + j,
          p_event_id[j], p_type[j], p_schema_version[j], data_lines[j], metadata_lines[j]), 'UTF8'));
        event_hash[j] := head_hash;
      end loop;
      ignored := pg_advisory_xact_lock(1095652432, 1);
      if cardinality(p_count) > 1 then
        perform from generate_series(2, cardinality(p_stream)) i
          where not antiphon_owns(split_part(p_stream[i], '-', 1)) or p_expected[i] is distinct from coalesce((
            select h.version from stream_heads h where h.workspace = p_workspace[i] and h.stream_id = p_stream[i]), 0);
        usual := not found;
      end if;
    end if;
    if usual then
      ignored := set_config('antiphon.appended', 'yes', true);
      select e.position from events e order by e.position desc limit 1 into base;
      if base is null then
        select h.base_position into strict base from log_head h where h.id = 1;
      end if;
      insert into events
        select base + j, p_workspace[1], split_part(p_stream[1], '-', 1), p_stream[1], p_expected[1] + j, p_event_id[j], p_type[j],
          p_schema_version[j], data_lines[j]::jsonb, metadata_lines[j]::jsonb, clock_timestamp(), event_hash[j]
        from generate_series(1, p_count[1]) j
        union all
        select base + p_count[1] + 1, c_workspace[1], 'budget', 'budget-' || c_id[1], settled + 1, c_event_id[1],
          case settled when 1 then 'BudgetSettled' else 'BudgetReserved' end, 1, added, c_metadata[1]::jsonb,
          clock_timestamp(), c_hash[1];
      update stream_heads h set version = p_expected[1] + p_count[1], hash = head_hash
        where h.workspace = p_workspace[1] and h.stream_id = p_stream[1];
      if settled = 1 then
        update stream_heads h set version = 2, hash = c_hash[1]
          where h.workspace = c_workspace[1] and h.stream_id = 'budget-' || c_id[1];
      end if;
      heads := p_expected;
      extensions := array[jsonb_build_object('category', 'budget', case settled when 1 then 'settled' else 'reserved' end, added)];
      return;
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
      raise exception 'the log refused a request with an extension' using errcode = 'serialization_failure';
    end if;
    extensions[c_request[c]] := jsonb_build_object('category', 'budget') || coalesce(extensions[c_request[c]], '{}')
      || jsonb_build_object(case when c <= settled then 'settled' else 'reserved' end, c_data[c]::jsonb);
  end loop;
  insert into events
    select (select e.position from events e order by e.position desc limit 1) + c, c_workspace[c], 'budget', 'budget-' || c_id[c],
      case when c <= settled then 2 else 1 end, c_event_id[c],
      case when c <= settled then 'BudgetSettled' else 'BudgetReserved' end, 1, c_data[c]::jsonb, c_metadata[c]::jsonb,
      clock_timestamp(), c_hash[c]
    from generate_series(1, cardinality(c_id)) c;
  if settled > 0 then
    insert into stream_heads as h (workspace, stream_id, version, hash)
      select c_workspace[c], 'budget-' || c_id[c], 2, c_hash[c] from generate_series(1, settled) c
      on conflict (workspace, stream_id) do update set version = excluded.version, hash = excluded.hash;
  end if;
end $$;
