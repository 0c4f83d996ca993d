-- Each role reads and writes what its service needs.

-- The sandbox runs other people's code: it reads nothing of the log, and appends nothing.
revoke all on all tables in schema public from antiphon_sandbox;
revoke execute on function antiphon_append from antiphon_sandbox;
revoke all on leases from antiphon_gateway, antiphon_metering, antiphon_memory;
revoke insert, update, delete on leases from antiphon_agent;
revoke all on projection_checkpoints, projection_parked, category_owners, log_archives from antiphon_gateway;
revoke all on category_owners, log_archives from antiphon_metering, antiphon_memory;
revoke all on category_owners from antiphon_agent;
grant select on leases to antiphon_reader;

-- Restrictive policies narrow what the workspace policies let through.
create policy own_categories on events as restrictive for select to antiphon_metering
  using (category in ('budget', 'session'));
create policy no_identities on events as restrictive for select to antiphon_agent
  using (category not in ('key', 'workspace'));

-- True when the role that the session has taken may hold the lease: drivers hold `session/<id>`, the leaders of the relay
-- and of the signer `relay` and `log-roots`.
create function antiphon_owns_lease(p_name text) returns boolean
language plpgsql stable set search_path = public, pg_temp as $$
declare
  service constant text := case split_part(p_name, '/', 1) when 'session' then 'agent' 
    when 'relay' then 'memory' when 'log-roots' then 'memory' end;
begin
  return service is not null
    and pg_has_role(coalesce(nullif(current_setting('role'), 'none'), session_user), 'antiphon_' || service, 'member');
end $$;

create function antiphon_check_lease(p_name text) returns void
language plpgsql stable set search_path = public, pg_temp as $$
begin
  if not antiphon_owns_lease(p_name) then
    raise exception 'this service may not hold the lease %', p_name using errcode = 'insufficient_privilege';
  end if;
end $$;

-- Acquires a free, expired or own lease. An own unexpired lease keeps its epoch; every other acquisition raises it. Returns
-- no epoch when another owner holds it.
create function antiphon_lease_acquire(p_workspace text, p_name text, p_owner text, p_ttl_ms float8) returns bigint
language plpgsql security definer set search_path = public, pg_temp as $$
declare
  acquired bigint;
begin
  perform antiphon_check_lease(p_name);
  insert into leases as l (workspace, name, owner, epoch, expires_at)
    values (p_workspace, p_name, p_owner, 1, clock_timestamp() + make_interval(secs => p_ttl_ms / 1000))
    on conflict (workspace, name) do update set
      epoch = case when l.owner = excluded.owner and l.expires_at > clock_timestamp() then l.epoch else l.epoch + 1 end,
      owner = excluded.owner, expires_at = excluded.expires_at
    where l.owner is null or l.owner = excluded.owner or l.expires_at <= clock_timestamp()
    returning l.epoch into acquired;
  return acquired;
end $$;

create function antiphon_lease_holder(p_workspace text, p_name text, out owner text, out epoch bigint)
language plpgsql stable security definer set search_path = public, pg_temp as $$
begin
  perform antiphon_check_lease(p_name);
  select l.owner, l.epoch into owner, epoch from leases l where l.workspace = p_workspace and l.name = p_name;
end $$;

-- Extends leases, and returns those that are still held. Locks rows in the order in which an append locks them.
create function antiphon_lease_renew(
  p_workspace text[], p_name text[], p_owner text[], p_epoch bigint[], p_ttl_ms float8
) returns table (workspace text, name text)
language plpgsql security definer set search_path = public, pg_temp as $$
#variable_conflict use_column
begin
  for i in 1 .. cardinality(p_name) loop
    perform antiphon_check_lease(p_name[i]);
  end loop;
  return query
    with held as (
      select l.workspace, l.name from leases l
      join unnest(p_workspace, p_name, p_owner, p_epoch) as r (workspace, name, owner, epoch)
        on l.workspace = r.workspace and l.name = r.name and l.owner = r.owner and l.epoch = r.epoch
      order by l.workspace, l.name for update of l)
    update leases l set expires_at = clock_timestamp() + make_interval(secs => p_ttl_ms / 1000)
    from held where l.workspace = held.workspace and l.name = held.name
    returning l.workspace, l.name;
end $$;

create function antiphon_lease_release(p_workspace text, p_name text, p_owner text, p_epoch bigint) returns void
language plpgsql security definer set search_path = public, pg_temp as $$
begin
  perform antiphon_check_lease(p_name);
  update leases l set owner = null, expires_at = clock_timestamp()
    where l.workspace = p_workspace and l.name = p_name and l.owner = p_owner and l.epoch = p_epoch;
end $$;

-- Releases the leases of dead owners that the role may hold, and returns their number.
create function antiphon_lease_release_owner(p_prefix text) returns bigint
language plpgsql security definer set search_path = public, pg_temp as $$
declare
  released bigint;
begin
  with held as (
    select l.workspace, l.name from leases l
    where starts_with(l.owner, p_prefix) and antiphon_owns_lease(l.name)
    order by l.workspace, l.name for update)
  update leases l set owner = null, expires_at = clock_timestamp()
  from held where l.workspace = held.workspace and l.name = held.name;
  get diagnostics released = row_count;
  return released;
end $$;

revoke all on function antiphon_owns_lease, antiphon_check_lease, antiphon_lease_acquire, antiphon_lease_holder,
  antiphon_lease_renew, antiphon_lease_release, antiphon_lease_release_owner from public;
grant execute on function antiphon_lease_acquire, antiphon_lease_holder, antiphon_lease_renew, antiphon_lease_release,
  antiphon_lease_release_owner to antiphon_agent, antiphon_memory;

-- A claim's scope is `<caller>/<method>`: only the service that handles the method may claim under it, and see its answer.
create function antiphon_owns_claim(p_scope text) returns boolean
language plpgsql stable set search_path = public, pg_temp as $$
declare
  noun constant text := split_part(substring(p_scope from '[^/]*$'), '.', 1);
begin
  return antiphon_owns(case noun when 'turn' then 'session' when 'credential' then 'key' else noun end);
end $$;
revoke all on function antiphon_owns_claim from public;

-- As before (docs/adr/0002), with one more outcome: `not_owner` for a claim under the scope of another service.
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
begin
  if current_setting('transaction_isolation') <> 'read committed' or current_setting('antiphon.appended', true) = 'yes' then
    raise exception 'an append needs read committed, and happens once in a transaction'
      using errcode = 'invalid_transaction_state';
  end if;
  ignored := set_config('antiphon.appended', 'yes', true);

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

  -- New streams get their head before any head is locked; whoever comes second waits here for the first.
  if 0 = any (p_expected) or array_position(p_expected, null) is not null then
    insert into stream_heads (workspace, stream_id, version, hash)
      select p_workspace[i], p_stream[i], 0, sha256(convert_to('antiphon-log-1' || chr(10) || p_workspace[i], 'UTF8'))
      from generate_series(1, cardinality(p_stream)) i
      where (p_expected[i] = 0 or p_expected[i] is null) and antiphon_owns(split_part(p_stream[i], '-', 1))
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
          where p_request[i] = item.request)
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
    where outcomes[p_request[i]] is null
    on conflict (workspace, stream_id) do update set version = excluded.version, hash = excluded.hash;

  if p_claim_request is not null then
    insert into idempotency (workspace, scope, key, digest, answer, versions, first_position, last_position, created_at)
      select p_claim_workspace[c], p_claim_scope[c], p_claim_key[c], p_claim_digest[c], p_claim_answer[c]::jsonb,
        (select array_agg(heads[i] + p_count[i] order by p_first[i])
          from generate_series(1, cardinality(p_stream)) i where p_request[i] = p_claim_request[c]),
        firsts[p_claim_request[c]], lasts[p_claim_request[c]], clock_timestamp()
      from generate_series(1, cardinality(p_claim_request)) c
      where outcomes[p_claim_request[c]] is null;
  end if;
end $$;

-- The file's name is joined to a folder by the audit, the restore and the backup.
alter table log_archives add constraint log_archives_file check (file !~ '[/\\]' and file not in ('', '.', '..'));
