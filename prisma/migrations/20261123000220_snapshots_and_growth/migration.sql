-- A snapshot is bound to the hash of the event at its version: one that is not of this stream is not read.
delete from agent_session_snapshots;
alter table agent_session_snapshots add column head_hash bytea not null;

-- As before (docs/adr/0101). Besides, it checks by itself that a signed root covers what leaves and that each stream is at
-- rest, and deletes the snapshots of archived sessions.
create or replace function antiphon_archive(
  p_archive uuid, p_file text, p_sha256 bytea, p_cut bigint,
  p_workspace text[], p_stream text[], p_from bigint[], p_to bigint[], p_hash bytea[]
) returns bigint
language plpgsql security definer set search_path = public, pg_temp as $$
declare
  head record;
  expected bigint;
  left_log bigint;
begin
  if p_cut >= (select e.position from events e order by e.position desc limit 1) then
    raise exception 'the newest event of the log stays' using errcode = 'check_violation';
  end if;
  if exists (select from projection_checkpoints c where c.position < p_cut) then
    raise exception 'projection % has not seen position % yet',
      (select min(c.name) from projection_checkpoints c where c.position < p_cut), p_cut using errcode = 'check_violation';
  end if;
  if p_cut > (select r.position from log_roots r order by r.number desc limit 1) then
    raise exception 'events up to position % are not covered by a signed root yet', p_cut using errcode = 'check_violation';
  end if;
  -- The agent writes the file and calls this function: its word alone does not say what may leave.
  for i in 1 .. cardinality(p_stream) loop
    if split_part(p_stream[i], '-', 1) not in ('session', 'run', 'budget') or starts_with(p_stream[i], 'session-key-') then
      raise exception 'event stream % never leaves the log', p_stream[i] using errcode = 'check_violation';
    end if;
    if exists (
      select from events e
      where e.workspace = p_workspace[i] and e.stream_id = p_stream[i] and e.stream_version between p_from[i] and p_to[i]
      having count(*) filter (where e.type = 'TurnRequested')
          <> count(*) filter (where e.type in ('TurnCompleted', 'TurnFailed', 'TurnCancelled'))
        or count(*) filter (where e.type = 'RunStarted')
          <> count(*) filter (where e.type in ('RunCompleted', 'RunFailed', 'RunCancelled'))
        or count(*) filter (where e.type = 'BudgetReserved')
          <> count(*) filter (where e.type in ('BudgetSettled', 'BudgetReleased', 'BudgetExpired'))
        or count(*) filter (where e.type = 'BudgetScopeFrozen')
          <> count(*) filter (where e.type = 'BudgetScopeUnfrozen')) then
      raise exception 'event stream % is not at rest', p_stream[i] using errcode = 'check_violation';
    end if;
  end loop;
  for i in 1 .. cardinality(p_stream) loop
    select h.version, h.hash into head from stream_heads h
      where h.workspace = p_workspace[i] and h.stream_id = p_stream[i] for update;
    if head.version is distinct from p_to[i] or head.hash is distinct from p_hash[i] then
      raise exception 'event stream % has grown', p_stream[i] using errcode = 'serialization_failure';
    end if;
  end loop;
  select sum(p_to[i] - p_from[i] + 1) into expected from generate_series(1, cardinality(p_stream)) i;

  insert into log_archives (archive_id, file, sha256, cut_position, events, streams, archived_at)
    values (p_archive, p_file, p_sha256, p_cut, expected, cardinality(p_stream), clock_timestamp());
  insert into archived_streams (workspace, stream_id, from_version, to_version, hash, archive_id)
    select p_workspace[i], p_stream[i], p_from[i], p_to[i], p_hash[i], p_archive
    from generate_series(1, cardinality(p_stream)) i;
  delete from events e using archived_streams a
    where a.archive_id = p_archive and e.workspace = a.workspace and e.stream_id = a.stream_id
      and e.stream_version between a.from_version and a.to_version and e.position <= p_cut;
  get diagnostics left_log = row_count;
  if left_log <> expected then
    raise exception '% events were to leave, % are there', expected, left_log using errcode = 'serialization_failure';
  end if;
  -- A snapshot contains the conversation, and would let an archived session go on.
  delete from agent_session_snapshots s using archived_streams a
    where a.archive_id = p_archive and s.workspace = a.workspace and 'session-' || s.session_id = a.stream_id;
  update log_head set base_position = greatest(base_position, p_cut) where id = 1;
  return left_log;
end $$;

-- Highest epoch of a deleted lease. A new lease begins above it, so that no former holder has its epoch.
create table lease_floor (
  id integer not null,
  epoch bigint not null,
  constraint lease_floor_pkey primary key (id)
);
insert into lease_floor (id, epoch) values (1, 0);
grant select on lease_floor to antiphon_reader;

create or replace function antiphon_lease_acquire(p_workspace text, p_name text, p_owner text, p_ttl_ms float8) returns bigint
language plpgsql security definer set search_path = public, pg_temp as $$
declare
  acquired bigint;
begin
  perform antiphon_check_lease(p_name);
  insert into leases as l (workspace, name, owner, epoch, expires_at)
    select p_workspace, p_name, p_owner, f.epoch + 1, clock_timestamp() + make_interval(secs => p_ttl_ms / 1000)
    from lease_floor f where f.id = 1
    on conflict (workspace, name) do update set
      epoch = case when l.owner = excluded.owner and l.expires_at > clock_timestamp() then l.epoch else l.epoch + 1 end,
      owner = excluded.owner, expires_at = excluded.expires_at
    where l.owner is null or l.owner = excluded.owner or l.expires_at <= clock_timestamp()
    returning l.epoch into acquired;
  return acquired;
end $$;

-- Deletes up to p_limit free leases of sessions that were last held before p_before, and returns their number. The floor
-- rises first: a lease that is made from then on begins above every deleted one.
create function antiphon_delete_leases(p_before timestamptz, p_limit integer) returns bigint
language plpgsql security definer set search_path = public, pg_temp as $$
declare
  deleted bigint;
begin
  if p_before > now() - interval '1 day' then
    raise exception 'leases of the last day stay' using errcode = 'check_violation';
  end if;
  -- Acquisitions read the floor: they wait until this commits.
  lock table lease_floor in access exclusive mode;
  with old as (
    select workspace, name, epoch from leases
    where starts_with(name, 'session/') and expires_at < p_before
    order by workspace, name limit p_limit for update skip locked
  ), gone as (
    delete from leases l using old where l.workspace = old.workspace and l.name = old.name returning old.epoch
  ), floor as (
    update lease_floor set epoch = greatest(epoch, (select max(g.epoch) from gone g)) where id = 1
  )
  select count(*) from gone into deleted;
  return deleted;
end $$;

-- Deletes up to p_limit idempotency claims that were made before p_before, and returns their number. A claim of a run that
-- has not ended stays: the run would start the same node again, for as long as it waits for an approval.
create function antiphon_delete_claims(p_before timestamptz, p_limit integer) returns bigint
language plpgsql security definer set search_path = public, pg_temp as $$
declare
  deleted bigint;
begin
  if p_before > now() - interval '1 day' then
    raise exception 'claims of the last day stay' using errcode = 'check_violation';
  end if;
  delete from idempotency i using (
    select c.workspace, c.scope, c.key from idempotency c
    where c.created_at < p_before and not exists (
      select from agent_runs r where r.workspace = c.workspace and r.ended_at is null
        and (c.key = 'run/' || r.run_id or starts_with(c.key, 'run/' || r.run_id || '/')
          or starts_with(c.scope, 'run/' || r.run_id || '/')))
    order by c.created_at limit p_limit for update skip locked
  ) old where i.workspace = old.workspace and i.scope = old.scope and i.key = old.key;
  get diagnostics deleted = row_count;
  return deleted;
end $$;

revoke all on function antiphon_delete_leases, antiphon_delete_claims from public;
grant execute on function antiphon_delete_leases, antiphon_delete_claims to antiphon_agent;
