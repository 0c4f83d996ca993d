-- Old events leave to archive files, and come back (docs/adr/0101).

-- One row a file. Its events are in no order of positions: whole event streams leave.
create table log_archives (
  archive_id uuid not null,
  file text collate "C" not null,
  sha256 bytea not null,
  cut_position bigint not null,
  events bigint not null,
  streams bigint not null,
  archived_at timestamptz(3) not null,
  constraint log_archives_pkey primary key (archive_id)
);

-- The chain checkpoint of each stream that left: up to which version, with which hash.
create table archived_streams (
  workspace text collate "C" not null,
  stream_id text collate "C" not null,
  from_version bigint not null,
  to_version bigint not null,
  hash bytea not null,
  archive_id uuid not null,
  constraint archived_streams_pkey primary key (workspace, stream_id, to_version)
);
create index archived_streams_archive_id_idx on archived_streams (archive_id);

-- Events may be deleted only where a checkpoint says that they were archived: whoever deletes them.
create function antiphon_check_leaving() returns trigger language plpgsql set search_path = public, pg_temp as $$
begin
  if exists (
    select from gone g where not exists (
      select from archived_streams a
      where a.workspace = g.workspace and a.stream_id = g.stream_id
        and g.stream_version between a.from_version and a.to_version)) then
    raise exception 'the log is append-only: delete on events is refused without a checkpoint of an archive'
      using errcode = 'insufficient_privilege';
  end if;
  return null;
end $$;
drop trigger events_append_only on events;
create trigger events_append_only before update or truncate on events
  for each statement execute function antiphon_refuse_change();
create trigger events_leave_archived after delete on events
  referencing old table as gone for each statement execute function antiphon_check_leaving();
create trigger archived_streams_keep before update or truncate on archived_streams
  for each statement execute function antiphon_refuse_change();

-- Takes whole event streams out of the log, in one transaction, once their file is safe. The caller gives, one element
-- a stream, in the order of workspace and stream id (the order of locks): which versions are in the file, and the hash
-- of the last one. Refuses when a stream has grown since (serialization_failure), when anything is not in the file, and
-- the log's newest event, from which positions go on.
create function antiphon_archive(
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
  update log_head set base_position = greatest(base_position, p_cut) where id = 1;
  return left_log;
end $$;

-- Puts lines of an archive file back, as they were; each is `to_jsonb` of a row. Refuses what its archive does not have.
create function antiphon_restore_events(p_archive uuid, p_lines text[]) returns bigint
language plpgsql security definer set search_path = public, pg_temp as $$
declare
  back bigint;
begin
  insert into events
    select e.* from unnest(p_lines) l cross join lateral jsonb_populate_record(null::events, l::jsonb) e
    where exists (
      select from archived_streams a
      where a.archive_id = p_archive and a.workspace = e.workspace and a.stream_id = e.stream_id
        and e.stream_version between a.from_version and a.to_version);
  get diagnostics back = row_count;
  if back <> cardinality(p_lines) then
    raise exception 'the file has events that archive % does not have', p_archive using errcode = 'check_violation';
  end if;
  return back;
end $$;

-- Ends a restore, in its transaction: all is back and every chain ends with the hash of its checkpoint.
create function antiphon_restore_archive(p_archive uuid) returns void
language plpgsql security definer set search_path = public, pg_temp as $$
declare
  short record;
begin
  select a.stream_id into short from archived_streams a
    left join events e on e.workspace = a.workspace and e.stream_id = a.stream_id and e.stream_version = a.to_version
    where a.archive_id = p_archive and (
      e.hash is distinct from a.hash
      or (select count(*) from events b where b.workspace = a.workspace and b.stream_id = a.stream_id
          and b.stream_version between a.from_version and a.to_version) <> a.to_version - a.from_version + 1)
    limit 1;
  if found then
    raise exception 'the file does not have event stream % as it left', short.stream_id using errcode = 'check_violation';
  end if;
  delete from archived_streams where archive_id = p_archive;
  delete from log_archives where archive_id = p_archive;
  update log_head set base_position = coalesce((select max(cut_position) from log_archives), 0) where id = 1;
end $$;

revoke all on function antiphon_archive, antiphon_restore_events, antiphon_restore_archive, antiphon_check_leaving from public;
-- Retention is run by the agent's sweeps; what was archived is put back by who owns the database.
grant execute on function antiphon_archive to antiphon_agent;
grant select on log_archives, archived_streams
  to antiphon_gateway, antiphon_agent, antiphon_sandbox, antiphon_metering, antiphon_memory, antiphon_reader;
