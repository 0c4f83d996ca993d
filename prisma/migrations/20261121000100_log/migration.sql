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
    -- Services connect as this migration's user with `-c role=antiphon_<service>` where the database is not ours.
    if not pg_has_role(current_user, role_name, 'member') then
      execute format('grant %I to %I', role_name, current_user);
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

-- Appends a batch of requests and answers one row for each stream of each request, in the given order.
-- A request that may not be appended fails alone: its rows carry the reason, and the others are written.
-- No two requests of a batch share a stream, an event id or an idempotency key (the caller splits them).
-- Locks: leases, then stream heads, each in order of their keys, then the log head; every append follows
-- this order, so appends never wait for each other in a circle. Call it once, as the last step of a transaction.
create function antiphon_append(
  p_request integer[], p_workspace text[], p_stream text[], p_category text[], p_expected bigint[], p_count integer[],
  p_event_id uuid[], p_type text[], p_schema_version integer[], p_data text[], p_metadata text[],
  p_fence_request integer[], p_fence_lease text[], p_fence_epoch bigint[],
  p_claim_request integer[], p_claim_scope text[], p_claim_key text[], p_claim_digest text[], p_claim_answer text[]
) returns table (
  request integer, outcome text, version bigint, first_position bigint, last_position bigint, detail jsonb
)
language plpgsql security definer
set search_path = public, pg_temp
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
declare
  n_streams constant integer := cardinality(p_stream);
  n_requests constant integer := p_request[n_streams];
  effective_role text := current_setting('role');
  workspaces text[] := array_fill(null::text, array[n_requests]);
  outcomes text[] := array_fill('appended'::text, array[n_requests]);
  details jsonb[] := array_fill(null::jsonb, array[n_requests]);
  firsts bigint[] := array_fill(null::bigint, array[n_requests]);
  lasts bigint[] := array_fill(null::bigint, array[n_requests]);
  event_stream integer[];
  head_version bigint[];
  head_hash bytea[];
  positions bigint[];
  versions bigint[];
  hashes bytea[];
  next_position bigint;
  chain bytea;
  at integer := 0;
  req integer;
  found_row record;
begin
  if current_setting('transaction_isolation') <> 'read committed' then
    raise exception 'an append needs read committed' using errcode = 'invalid_transaction_state';
  end if;
  if current_setting('antiphon.appended', true) = 'yes' then
    raise exception 'one append in a transaction' using errcode = 'invalid_transaction_state';
  end if;
  perform set_config('antiphon.appended', 'yes', true);

  for i in 1 .. n_streams loop
    workspaces[p_request[i]] := p_workspace[i];
  end loop;

  -- Who may append here: the role that the session has taken, not the owner of this function.
  if effective_role = 'none' then
    effective_role := session_user;
  end if;
  for found_row in
    select distinct s.req, s.category from unnest(p_request, p_category) as s (req, category)
    where not exists (
      select from category_owners o
      where o.category = s.category and pg_has_role(effective_role, 'antiphon_' || o.service, 'member'))
  loop
    outcomes[found_row.req] := 'not_owner';
    details[found_row.req] := jsonb_build_object('category', found_row.category);
  end loop;

  -- A shared lock keeps the lease from changing hands before this commits.
  if cardinality(p_fence_request) > 0 then
    perform from leases l
      join unnest(p_fence_request, p_fence_lease) as f (req, name)
        on l.workspace = workspaces[f.req] and l.name = f.name
      order by l.workspace, l.name for share of l;
  end if;

  insert into stream_heads as h (workspace, stream_id, version, hash)
    select s.workspace, s.stream_id, 0, sha256(convert_to('antiphon-log-1' || chr(10) || s.workspace, 'UTF8'))
    from unnest(p_workspace, p_stream) as s (workspace, stream_id)
    order by s.workspace, s.stream_id
    on conflict do nothing;
  select array_agg(l.version order by l.ord), array_agg(l.hash order by l.ord) into head_version, head_hash
    from (
      select s.ord, h.version, h.hash
      from unnest(p_workspace, p_stream) with ordinality as s (workspace, stream_id, ord)
      join stream_heads h on h.workspace = s.workspace and h.stream_id = s.stream_id
      order by h.workspace, h.stream_id for update of h
    ) l;

  -- Last of all locks: held until the commit, so positions are gapless and in the order of commits.
  select h.base_position into next_position from log_head h where h.id = 1 for update;
  next_position := greatest(
    next_position, coalesce((select e.position from events e order by e.position desc limit 1), 0));

  select array_agg(s.ord order by s.ord, n) into event_stream
    from unnest(p_count) with ordinality as s (count, ord), generate_series(1, s.count) n;

  -- Event ids before versions: what is there already is answered with its first result.
  if exists (select from events e where e.event_id = any (p_event_id)) then
    for found_row in
      select p_request[n.stream] as req,
        coalesce(bool_and(e.workspace = p_workspace[n.stream] and e.stream_id = p_stream[n.stream] and e.type = n.type
          and e.schema_version = n.schema_version and e.data = n.data::jsonb), false) and count(e.event_id) = count(*) as same,
        min(e.position) as first, max(e.position) as last, min(e.event_id::text) as event_id
      from unnest(p_event_id, event_stream, p_type, p_schema_version, p_data) as n (event_id, stream, type, schema_version, data)
      left join events e on e.event_id = n.event_id
      group by 1 having count(e.event_id) > 0
    loop
      continue when outcomes[found_row.req] <> 'appended';
      if found_row.same then
        outcomes[found_row.req] := 'duplicate';
        firsts[found_row.req] := found_row.first;
        lasts[found_row.req] := found_row.last;
        details[found_row.req] := (
          select jsonb_build_object('versions', jsonb_agg(v.version order by v.stream)) from (
            select n.stream, max(e.stream_version) as version
            from unnest(p_event_id, event_stream) as n (event_id, stream) join events e on e.event_id = n.event_id
            where p_request[n.stream] = found_row.req group by n.stream) v);
      else
        outcomes[found_row.req] := 'event_id_conflict';
        details[found_row.req] := jsonb_build_object('eventId', found_row.event_id);
      end if;
    end loop;
  end if;

  if cardinality(p_claim_request) > 0 then
    for found_row in
      select c.req, i.digest = c.digest as same, i.answer, i.versions, i.first_position, i.last_position
      from unnest(p_claim_request, p_claim_scope, p_claim_key, p_claim_digest) as c (req, scope, key, digest)
      join idempotency i on i.workspace = workspaces[c.req] and i.scope = c.scope and i.key = c.key
    loop
      continue when outcomes[found_row.req] <> 'appended';
      outcomes[found_row.req] := case when found_row.same then 'joined' else 'idempotency_conflict' end;
      if found_row.same then
        firsts[found_row.req] := found_row.first_position;
        lasts[found_row.req] := found_row.last_position;
        details[found_row.req] := jsonb_build_object('answer', found_row.answer, 'versions', found_row.versions);
      end if;
    end loop;
  end if;

  if cardinality(p_fence_request) > 0 then
    for found_row in
      select f.req, f.name, l.epoch, l.owner
      from unnest(p_fence_request, p_fence_lease, p_fence_epoch) as f (req, name, epoch)
      left join leases l on l.workspace = workspaces[f.req] and l.name = f.name
      where l.epoch is distinct from f.epoch or l.owner is null
    loop
      continue when outcomes[found_row.req] <> 'appended';
      outcomes[found_row.req] := 'fenced';
      details[found_row.req] := jsonb_build_object('actual', coalesce(found_row.epoch, 0));
    end loop;
  end if;

  for i in 1 .. n_streams loop
    req := p_request[i];
    if outcomes[req] = 'appended' and p_expected[i] <> head_version[i] then
      outcomes[req] := 'version_conflict';
      details[req] := jsonb_build_object('streamId', p_stream[i], 'expected', p_expected[i], 'actual', head_version[i]);
    end if;
  end loop;

  positions := array_fill(null::bigint, array[cardinality(p_event_id)]);
  versions := positions;
  hashes := array_fill(null::bytea, array[cardinality(p_event_id)]);
  for i in 1 .. n_streams loop
    req := p_request[i];
    if outcomes[req] <> 'appended' then
      at := at + p_count[i];
      continue;
    end if;
    firsts[req] := coalesce(firsts[req], next_position + 1);
    chain := head_hash[i];
    for j in at + 1 .. at + p_count[i] loop
      next_position := next_position + 1;
      head_version[i] := head_version[i] + 1;
      chain := sha256(chain || convert_to(concat_ws(chr(10), p_stream[i], head_version[i], p_event_id[j], p_type[j],
        p_schema_version[j], p_data[j], p_metadata[j]), 'UTF8'));
      positions[j] := next_position;
      versions[j] := head_version[i];
      hashes[j] := chain;
    end loop;
    at := at + p_count[i];
    head_hash[i] := chain;
    lasts[req] := next_position;
  end loop;

  insert into events
    select n.position, p_workspace[n.stream], p_category[n.stream], p_stream[n.stream], n.version, n.event_id, n.type,
      n.schema_version, n.data::jsonb, n.metadata::jsonb, clock_timestamp(), n.hash
    from unnest(positions, versions, hashes, event_stream, p_event_id, p_type, p_schema_version, p_data, p_metadata)
      as n (position, version, hash, stream, event_id, type, schema_version, data, metadata)
    where n.position is not null;

  -- A request that failed leaves no head behind for a stream that does not exist.
  delete from stream_heads h
    using unnest(p_request, p_workspace, p_stream) as s (req, workspace, stream_id)
    where outcomes[s.req] <> 'appended' and h.workspace = s.workspace and h.stream_id = s.stream_id and h.version = 0;
  update stream_heads h set version = s.version, hash = s.hash
    from unnest(p_request, p_workspace, p_stream, head_version, head_hash) as s (req, workspace, stream_id, version, hash)
    where outcomes[s.req] = 'appended' and h.workspace = s.workspace and h.stream_id = s.stream_id;

  insert into idempotency (workspace, scope, key, digest, answer, versions, first_position, last_position, created_at)
    select workspaces[c.req], c.scope, c.key, c.digest, c.answer::jsonb,
      (select array_agg(s.version order by s.ord)
        from unnest(p_request, head_version) with ordinality as s (req, version, ord) where s.req = c.req),
      firsts[c.req], lasts[c.req], clock_timestamp()
    from unnest(p_claim_request, p_claim_scope, p_claim_key, p_claim_digest, p_claim_answer)
      as c (req, scope, key, digest, answer)
    where outcomes[c.req] = 'appended';

  return query
    select s.req, outcomes[s.req], s.version, firsts[s.req], lasts[s.req], details[s.req]
    from unnest(p_request, head_version) with ordinality as s (req, version, ord) order by s.ord;
end $$;

revoke all on all tables in schema public from public;
revoke all on function antiphon_append from public;
grant usage on schema public to antiphon_gateway, antiphon_agent, antiphon_sandbox, antiphon_metering, antiphon_memory, antiphon_reader;
grant select on events, stream_heads, log_head, category_owners, projection_checkpoints, projection_parked
  to antiphon_gateway, antiphon_agent, antiphon_sandbox, antiphon_metering, antiphon_memory, antiphon_reader;
grant execute on function antiphon_append to antiphon_gateway, antiphon_agent, antiphon_sandbox, antiphon_metering, antiphon_memory;
grant select, insert, update on leases, projection_checkpoints
  to antiphon_gateway, antiphon_agent, antiphon_sandbox, antiphon_metering, antiphon_memory;
grant select, insert, update, delete on projection_parked
  to antiphon_gateway, antiphon_agent, antiphon_sandbox, antiphon_metering, antiphon_memory;
