-- Appends a batch of requests. A request that may not be appended fails alone: `outcomes` has its reason, and the others are
-- written. The caller ensures that
--   streams (p_request … p_count, one element each) are in the order of workspace and stream id, which is the order of their
--   locks; fences are in the order of workspace and lease; events are in the order of their requests and, within a request,
--   of its streams (p_first is the first event of a stream); and that
--   no two requests share a stream, an event id or an idempotency key.
-- A stream without events (p_count = 0) is a guard: it must be at its expected version. Guards stand behind the other streams.
-- Locks: leases, then stream heads, then the log itself. Each append takes them in this order, so no two wait in a circle.
-- Call it once, as the last step of a transaction.
-- Returns `base`, the position before the first event, and `heads`, the version of each stream before the append. Unless all
-- requests were plainly appended, it also returns `outcomes` (null = appended), positions and details, one element a request.
-- Outcomes: fenced, not_owner (of a category or of the scope of a claim), version_conflict, duplicate, event_id_conflict,
-- joined, idempotency_conflict.
-- p_data and p_metadata are RFC 8785 texts, one line an event. Such a text has no line feed, and lines parse faster than arrays.
-- Without p_careful, an event id that exists elsewhere raises unique_violation, which saves one look-up an event.
-- One event without a fence, and one stream that exists under at most one fence, have shorter paths with the same locks in the
-- same order. Other batches and refusals take the general path.
-- Subscripts replace unnest, and look-ups by key (`offset 0` keeps them) replace joins: those cost more to start than the work
-- takes, and may be planned the wrong way round (docs/adr/0002).
create or replace function antiphon_append(
  p_careful boolean,
  p_request integer[], p_workspace text[], p_stream text[], p_expected bigint[], p_first integer[], p_count integer[],
  p_event_id uuid[], p_type text[], p_schema_version integer[], p_data text, p_metadata text,
  p_fence_request integer[], p_fence_workspace text[], p_fence_lease text[], p_fence_epoch bigint[],
  p_claim_request integer[], p_claim_workspace text[], p_claim_scope text[], p_claim_key text[], p_claim_digest text[],
  p_claim_answer text[],
  out base bigint, out heads bigint[], out outcomes text[], out firsts bigint[], out lasts bigint[], out details jsonb[]
)
language plpgsql security definer
set search_path = public, pg_temp
-- A plan that was made while a table was small must not outlive that: always by key.
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
-- Before PostgreSQL 18, a scan that is switched off counts as so dear that its plan would be compiled, for seconds.
set jit = off
as $$
declare
  item record;
  owned_category text;
  data_lines constant text[] := string_to_array(p_data, e'\n');
  metadata_lines constant text[] := string_to_array(p_metadata, e'\n');
  event_hash bytea[];
  head_hash bytea[];
  positions bigint[];
  chain bytea;
  ignored text;
  unusual boolean := p_careful or p_claim_request is not null;
  seen integer := 0;
  usual boolean;
  stream text;
begin
  if current_setting('transaction_isolation') <> 'read committed' or current_setting('antiphon.appended', true) = 'yes' then
    raise exception 'an append needs read committed, and happens once in a transaction'
      using errcode = 'invalid_transaction_state';
  end if;
  ignored := set_config('antiphon.appended', 'yes', true);

  -- One event of one stream that exists, without a fence.
  if not unusual and cardinality(p_stream) = 1 and p_expected[1] > 0 and p_count[1] = 1 and p_fence_request is null
      and antiphon_owns(split_part(p_stream[1], '-', 1)) then
    update stream_heads h
      set version = h.version + 1, hash = sha256(h.hash || convert_to(concat_ws(e'\n', h.stream_id, h.version + 1,
        p_event_id[1], p_type[1], p_schema_version[1], p_data, p_metadata), 'UTF8'))
      where h.workspace = p_workspace[1] and h.stream_id = p_stream[1] and h.version = p_expected[1]
      returning h.hash into chain;
    if found then
      ignored := pg_advisory_xact_lock(1095652432, 1);
      insert into events values (
        1 + coalesce((select e.position from events e order by e.position desc limit 1),
          (select h.base_position from log_head h where h.id = 1)),
        p_workspace[1], split_part(p_stream[1], '-', 1), p_stream[1], p_expected[1] + 1, p_event_id[1], p_type[1],
        p_schema_version[1], p_data::jsonb, p_metadata::jsonb, clock_timestamp(), chain)
        returning position - 1 into base;
      heads := p_expected;
      return;
    end if;
  end if;

  -- The usual batch: one stream that exists. Anything else takes the general way below, and so does a refusal.
  if not unusual and cardinality(p_stream) = 1 and p_expected[1] > 0 and p_count[1] > 0 then
    usual := true;
    if p_fence_request is not null then
      perform from leases l where l.workspace = p_fence_workspace[1] and l.name = p_fence_lease[1]
        and l.epoch = p_fence_epoch[1] and l.owner is not null for share;
      usual := found and cardinality(p_fence_request) = 1;
    end if;
    stream := p_stream[1];
    owned_category := split_part(stream, '-', 1);
    if usual then
      select h.hash into chain from stream_heads h
        where h.workspace = p_workspace[1] and h.stream_id = stream and h.version = p_expected[1] for update;
      usual := found and antiphon_owns(owned_category);
    end if;
    if usual then
      for j in 1 .. p_count[1] loop
        chain := sha256(chain || convert_to(concat_ws(e'\n', stream, p_expected[1] + j,
          p_event_id[j], p_type[j], p_schema_version[j], data_lines[j], metadata_lines[j]), 'UTF8'));
        event_hash[j] := chain;
      end loop;
      ignored := pg_advisory_xact_lock(1095652432, 1);
      select e.position from events e order by e.position desc limit 1 into base;
      if base is null then
        select h.base_position into strict base from log_head h where h.id = 1;
      end if;
      insert into events
        select base + j, p_workspace[1], owned_category, stream, p_expected[1] + j, p_event_id[j], p_type[j], p_schema_version[j],
          data_lines[j]::jsonb, metadata_lines[j]::jsonb, clock_timestamp(), event_hash[j]
        from generate_series(1, p_count[1]) j;
      update stream_heads h set version = p_expected[1] + p_count[1], hash = chain
        where h.workspace = p_workspace[1] and h.stream_id = stream;
      heads := p_expected;
      return;
    end if;
    owned_category := null;
  end if;

  -- A shared lock keeps a lease from changing hands before this commits.
  if p_fence_request is not null then
    for item in
      select p_fence_request[i] as request, l.epoch = p_fence_epoch[i] and l.owner is not null as held, l.epoch
      from generate_series(1, cardinality(p_fence_request)) i
      left join lateral (
        select l.epoch, l.owner from leases l
        where l.workspace = p_fence_workspace[i] and l.name = p_fence_lease[i] for share
      ) l on true
    loop
      if item.held is not true then
        unusual := true;
        outcomes[item.request] := 'fenced';
        details[item.request] := jsonb_build_object('actual', coalesce(item.epoch, 0));
      end if;
    end loop;
  end if;

  -- New streams get their head before any head is locked. The second of two appends waits here for the first.
  if 0 = any (p_expected) or array_position(p_expected, null) is not null then
    insert into stream_heads (workspace, stream_id, version, hash)
      select p_workspace[i], p_stream[i], 0, sha256(convert_to('antiphon-log-1' || chr(10) || p_workspace[i], 'UTF8'))
      from generate_series(1, cardinality(p_stream)) i
      where p_count[i] > 0 and (p_expected[i] = 0 or p_expected[i] is null) and antiphon_owns(split_part(p_stream[i], '-', 1))
      on conflict do nothing;
  end if;

  for item in
    select i, p_request[i] as request, split_part(p_stream[i], '-', 1) as category, p_stream[i] as stream_id,
      p_expected[i] as expected, p_first[i] as first, p_first[i] + p_count[i] - 1 as last, h.version, h.hash
    from generate_series(1, cardinality(p_stream)) i
    left join lateral (
      select h.version, h.hash from stream_heads h
      where h.workspace = p_workspace[i] and h.stream_id = p_stream[i] for update
    ) h on true
    where p_count[i] > 0
  loop
    heads[item.i] := coalesce(item.version, 0);
    if item.category is distinct from owned_category then
      if not antiphon_owns(item.category) then
        unusual := true;
        outcomes[item.request] := 'not_owner';
        details[item.request] := jsonb_build_object('category', item.category);
        continue;
      end if;
      owned_category := item.category;
    end if;
    if item.expected <> coalesce(item.version, 0) then
      unusual := true;
      if outcomes[item.request] is null then
        outcomes[item.request] := 'version_conflict';
        details[item.request] := jsonb_build_object(
          'streamId', item.stream_id, 'expected', item.expected, 'actual', coalesce(item.version, 0));
      end if;
    end if;
    chain := item.hash;
    for j in item.first .. item.last loop
      chain := sha256(chain || convert_to(concat_ws(e'\n', item.stream_id, item.version + 1 + j - item.first,
        p_event_id[j], p_type[j], p_schema_version[j], data_lines[j], metadata_lines[j]), 'UTF8'));
      event_hash[j] := chain;
    end loop;
    head_hash[item.i] := chain;
  end loop;

  -- Last of all locks: held until the commit, so positions are gapless and in the order of commits.
  ignored := pg_advisory_xact_lock(1095652432, 1);
  select e.position from events e order by e.position desc limit 1 into base;
  if base is null then
    select h.base_position into strict base from log_head h where h.id = 1;
  end if;

  -- Guards need no lock of their own: no other append can commit before this one ends.
  if 0 = any (p_count) then
    for item in
      select p_request[i] as request, p_stream[i] as stream_id, p_expected[i] as expected, coalesce(h.version, 0) as actual
      from generate_series(1, cardinality(p_stream)) i
      left join lateral (
        select h.version from stream_heads h where h.workspace = p_workspace[i] and h.stream_id = p_stream[i]
      ) h on true
      where p_count[i] = 0
    loop
      if not antiphon_owns(split_part(item.stream_id, '-', 1)) then
        unusual := true;
        outcomes[item.request] := 'not_owner';
        details[item.request] := jsonb_build_object('category', split_part(item.stream_id, '-', 1));
      elsif item.actual <> item.expected and outcomes[item.request] is null then
        unusual := true;
        outcomes[item.request] := 'version_conflict';
        details[item.request] := jsonb_build_object(
          'streamId', item.stream_id, 'expected', item.expected, 'actual', item.actual);
      end if;
    end loop;
  end if;

  if unusual then
    for item in
      select p_claim_request[i] as request, p_claim_scope[i] as scope
      from generate_series(1, coalesce(cardinality(p_claim_request), 0)) i
      where not antiphon_owns_claim(p_claim_scope[i])
    loop
      outcomes[item.request] := 'not_owner';
      details[item.request] := jsonb_build_object('scope', item.scope);
    end loop;

    -- Event ids before versions: what is there already is answered with its first result.
    for item in
      select p_request[i] as request, min(e.position) as first, max(e.position) as last, min(e.event_id::text) as event_id,
        bool_and(e.event_id is not null and e.workspace = p_workspace[i] and e.stream_id = p_stream[i]
          and e.type = p_type[j] and e.schema_version = p_schema_version[j] and e.data = data_lines[j]::jsonb) as same
      from generate_series(1, cardinality(p_stream)) i
      cross join lateral generate_series(p_first[i], p_first[i] + p_count[i] - 1) j
      left join lateral (select * from events e where e.event_id = p_event_id[j] offset 0) e on true
      group by p_request[i] having count(e.event_id) > 0
    loop
      continue when outcomes[item.request] = 'not_owner';
      outcomes[item.request] := case when item.same then 'duplicate' else 'event_id_conflict' end;
      details[item.request] := case
        when not item.same then jsonb_build_object('eventId', item.event_id)
        else (
          select jsonb_build_object('versions', jsonb_agg(e.stream_version order by p_first[i]))
          from generate_series(1, cardinality(p_stream)) i
          cross join lateral (
            select e.stream_version from events e where e.event_id = p_event_id[p_first[i] + p_count[i] - 1] offset 0) e
          where p_request[i] = item.request and p_count[i] > 0)
        end;
      firsts[item.request] := item.first;
      lasts[item.request] := item.last;
    end loop;

    for item in
      select p_claim_request[i] as request, c.digest = p_claim_digest[i] as same, c.answer, c.versions,
        c.first_position, c.last_position
      from generate_series(1, cardinality(p_claim_request)) i
      cross join lateral (
        select * from idempotency c
        where c.workspace = p_claim_workspace[i] and c.scope = p_claim_scope[i] and c.key = p_claim_key[i] offset 0) c
    loop
      continue when outcomes[item.request] in ('not_owner', 'duplicate', 'event_id_conflict');
      outcomes[item.request] := case when item.same then 'joined' else 'idempotency_conflict' end;
      details[item.request] := case
        when item.same then jsonb_build_object('answer', item.answer, 'versions', item.versions) end;
      firsts[item.request] := item.first_position;
      lasts[item.request] := item.last_position;
    end loop;

    -- Positions of what is left, in the order of the requests.
    for item in
      select i, j, p_request[i] as request
      from generate_series(1, cardinality(p_stream)) i
      cross join lateral generate_series(p_first[i], p_first[i] + p_count[i] - 1) j
      where outcomes[p_request[i]] is null order by j
    loop
      seen := seen + 1;
      positions[item.j] := base + seen;
      firsts[item.request] := coalesce(firsts[item.request], base + seen);
      lasts[item.request] := base + seen;
    end loop;

    -- Elements that were never set are null from here on, not missing.
    select array_agg(outcomes[r] order by r), array_agg(firsts[r] order by r), array_agg(lasts[r] order by r),
        array_agg(details[r] order by r)
      into outcomes, firsts, lasts, details
      from generate_series(1, (select max(r) from unnest(p_request) r)) r;

    -- A request that failed leaves no head behind for a stream that does not exist.
    for i in 1 .. cardinality(p_stream) loop
      if outcomes[p_request[i]] is not null and heads[i] = 0 then
        delete from stream_heads h
          where h.workspace = p_workspace[i] and h.stream_id = p_stream[i] and h.version = 0;
      end if;
    end loop;
  end if;

  insert into events
    select coalesce(positions[j], base + j), p_workspace[i], split_part(p_stream[i], '-', 1), p_stream[i],
      heads[i] + 1 + j - p_first[i], p_event_id[j], p_type[j], p_schema_version[j], data_lines[j]::jsonb, metadata_lines[j]::jsonb,
      clock_timestamp(), event_hash[j]
    from generate_series(1, cardinality(p_stream)) i
    cross join lateral generate_series(p_first[i], p_first[i] + p_count[i] - 1) j
    where outcomes[p_request[i]] is null;

  insert into stream_heads as h (workspace, stream_id, version, hash)
    select p_workspace[i], p_stream[i], heads[i] + p_count[i], head_hash[i]
    from generate_series(1, cardinality(p_stream)) i
    where outcomes[p_request[i]] is null and p_count[i] > 0
    on conflict (workspace, stream_id) do update set version = excluded.version, hash = excluded.hash;

  if p_claim_request is not null then
    insert into idempotency (workspace, scope, key, digest, answer, versions, first_position, last_position, created_at)
      select p_claim_workspace[c], p_claim_scope[c], p_claim_key[c], p_claim_digest[c], p_claim_answer[c]::jsonb,
        (select array_agg(heads[i] + p_count[i] order by p_first[i])
          from generate_series(1, cardinality(p_stream)) i where p_request[i] = p_claim_request[c] and p_count[i] > 0),
        firsts[p_claim_request[c]], lasts[p_claim_request[c]], clock_timestamp()
      from generate_series(1, cardinality(p_claim_request)) c
      where outcomes[p_claim_request[c]] is null;
  end if;
end $$;
