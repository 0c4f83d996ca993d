-- The log, its guards, and the operational tables around it. Decisions: docs/adr/0001 to 0008.

-- Roles belong to the cluster, not to the database: another database's migration may be making them now.
do $$
declare
  role_name text;
begin
  foreach role_name in array array['antiphon_gateway', 'antiphon_agent', 'antiphon_sandbox', 'antiphon_metering', 'antiphon_memory', 'antiphon_reader'] loop
    if not exists (select from pg_roles where rolname = role_name) then
      begin
        execute format('create role %I nologin', role_name);
      exception when duplicate_object or unique_violation then
        null;
      end;
    end if;
    -- Where the database is not ours, services connect as this user with `-c role=antiphon_<service>`. Who makes a role
    -- may grant it, but since PostgreSQL 16 not take it without this.
    if not (select rolsuper from pg_roles where rolname = current_user) then
      begin
        execute format('grant %I to %I', role_name, current_user);
      exception when insufficient_privilege then
        if not pg_has_role(current_user, role_name, 'member') then
          raise;
        end if;
      end;
    end if;
  end loop;
end $$;

create table events (
  position bigint not null,
  workspace text collate "C" not null,
  category text collate "C" not null,
  stream_id text collate "C" not null,
  stream_version bigint not null,
  event_id uuid not null,
  type text collate "C" not null,
  schema_version integer not null,
  data jsonb not null,
  metadata jsonb not null,
  recorded_at timestamptz(3) not null,
  hash bytea not null,
  constraint events_pkey primary key (position)
);
create unique index events_event_id_key on events (event_id);
create unique index events_stream_key on events (workspace, stream_id, stream_version);

-- A stream's first append inserts its head; every later one updates it in place (HOT needs the room).
create table stream_heads (
  workspace text collate "C" not null,
  stream_id text collate "C" not null,
  version bigint not null,
  hash bytea not null,
  constraint stream_heads_pkey primary key (workspace, stream_id)
) with (fillfactor = 70);

create table log_head (
  id integer not null,
  epoch bigint not null,
  base_position bigint not null,
  constraint log_head_pkey primary key (id)
);
insert into log_head (id, epoch, base_position) values (1, 1, 0);

create table leases (
  workspace text collate "C" not null,
  name text collate "C" not null,
  owner text collate "C",
  epoch bigint not null,
  expires_at timestamptz(3) not null,
  constraint leases_pkey primary key (workspace, name)
) with (fillfactor = 50);
create index leases_owner_idx on leases (owner);

create table idempotency (
  workspace text collate "C" not null,
  scope text collate "C" not null,
  key text collate "C" not null,
  digest text collate "C" not null,
  answer jsonb not null,
  versions bigint[],
  first_position bigint not null,
  last_position bigint not null,
  created_at timestamptz(3) not null,
  constraint idempotency_pkey primary key (workspace, scope, key)
);
create index idempotency_created_at_idx on idempotency (created_at);

create table category_owners (
  category text collate "C" not null,
  service text collate "C" not null,
  constraint category_owners_pkey primary key (category)
);
insert into category_owners (category, service) values
  ('session', 'agent'), ('agent', 'agent'), ('run', 'agent'), ('task', 'agent'), ('workflow', 'agent'),
  ('budget', 'metering'), ('memory', 'memory'), ('plugin', 'sandbox'), ('workspace', 'gateway'), ('key', 'gateway');

create table projection_checkpoints (
  name text collate "C" not null,
  position bigint not null,
  epoch bigint not null,
  updated_at timestamptz(3) not null,
  constraint projection_checkpoints_pkey primary key (name)
) with (fillfactor = 50);

create table projection_parked (
  projection text collate "C" not null,
  workspace text collate "C" not null,
  stream_id text collate "C" not null,
  position bigint not null,
  reason text not null,
  parked_at timestamptz(3) not null,
  constraint projection_parked_pkey primary key (projection, workspace, stream_id)
);

-- Insert-only for the owner too; only a superuser who switches triggers off gets past this, and the hash chain shows it.
create function antiphon_refuse_change() returns trigger language plpgsql as $$
begin
  raise exception 'the log is append-only: % on % is refused', tg_op, tg_table_name using errcode = 'insufficient_privilege';
end $$;
create trigger events_append_only before update or delete or truncate on events
  for each statement execute function antiphon_refuse_change();
create trigger stream_heads_keep before truncate on stream_heads
  for each statement execute function antiphon_refuse_change();

-- True when the role that the session has taken (not the owner of a function on the way) owns the category.
create function antiphon_owns(p_category text) returns boolean
language plpgsql stable set search_path = public, pg_temp as $$
begin
  return exists (
    select from category_owners o
    where o.category = p_category
      and pg_has_role(coalesce(nullif(current_setting('role'), 'none'), session_user), 'antiphon_' || o.service, 'member'));
end $$;

-- Appends a batch of requests. A request that may not be appended fails alone: `outcomes` says why, and the others
-- are written. The caller sees to it that
--   streams (p_request … p_count, one element each) come in the order of workspace and stream id, which is the order
--   of their locks; fences in the order of workspace and lease; events in the order of their requests and, within a
--   request, of its streams: p_first is a stream's first event; and that
--   no two requests share a stream, an event id or an idempotency key.
-- Locks: leases, then stream heads, then the log itself, as every append does, so none waits for another in a circle.
-- Call it once, as the last step of a transaction.
-- Answers: `base`, the position before the first event; `heads`, each stream's version before the append; and only if
-- not all requests were plainly appended: `outcomes` (null = appended), positions and details, one element a request.
-- p_data and p_metadata: RFC 8785 text, one line an event; such text has no line feed, and lines parse faster than arrays.
-- Without p_careful an event id that exists elsewhere raises unique_violation, for the sake of one look-up an event.
-- Subscripts instead of unnest, and look-ups by key (`offset 0` keeps them) instead of joins, which cost more to start
-- than the work takes, and may be planned the wrong way round (docs/adr/0002).
create function antiphon_append(
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

revoke all on all tables in schema public from public;
revoke all on function antiphon_append, antiphon_owns from public;
grant usage on schema public to antiphon_gateway, antiphon_agent, antiphon_sandbox, antiphon_metering, antiphon_memory, antiphon_reader;
grant select on events, stream_heads, log_head, category_owners, projection_checkpoints, projection_parked
  to antiphon_gateway, antiphon_agent, antiphon_sandbox, antiphon_metering, antiphon_memory, antiphon_reader;
grant execute on function antiphon_append to antiphon_gateway, antiphon_agent, antiphon_sandbox, antiphon_metering, antiphon_memory;
grant select, insert, update on leases, projection_checkpoints
  to antiphon_gateway, antiphon_agent, antiphon_sandbox, antiphon_metering, antiphon_memory;
grant select, insert, update, delete on projection_parked
  to antiphon_gateway, antiphon_agent, antiphon_sandbox, antiphon_metering, antiphon_memory;
