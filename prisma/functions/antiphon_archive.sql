-- Moves whole event streams, and read messages of inboxes and topics, out of the log, in one transaction, once their file is
-- stored. Decision: docs/adr/0101. The caller gives, one element a stream, in the order of workspace and stream id (the order
-- of locks), the versions that are in the file and the hash of the last one. Returns the number of events that left.
-- Needs a request that the archiver has not refused, and ends it. Refuses (check_violation) a cut at the newest event, behind a
-- projection or beyond the signed roots; a stream that is not at rest or never leaves; and a task with an open task below it.
-- Refuses (serialization_failure) a stream that has grown since. Deletes the snapshots of archived sessions.
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
  -- The lock on the request makes a second archiver wait, and then refuse.
  delete from archive_requests r where r.archive_id = p_archive and r.file = p_file and r.sha256 = p_sha256
    and r.cut_position = p_cut and r.refusal is null;
  if not found then
    raise exception 'no request for the archive %', p_archive using errcode = 'check_violation';
  end if;
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
  -- A request alone does not say what may leave.
  for i in 1 .. cardinality(p_stream) loop
    if starts_with(p_stream[i], 'agent-inbox-') or starts_with(p_stream[i], 'agent-topic-') then
      if p_to[i] > antiphon_messages_that_leave(p_workspace[i], p_stream[i], p_cut) then
        raise exception 'event stream % has messages that are not read', p_stream[i] using errcode = 'check_violation';
      end if;
      continue;
    end if;
    if split_part(p_stream[i], '-', 1) not in ('session', 'run', 'budget', 'task') or starts_with(p_stream[i], 'session-key-') then
      raise exception 'event stream % never leaves the log', p_stream[i] using errcode = 'check_violation';
    end if;
    if exists (
      select from events e
      where e.workspace = p_workspace[i] and e.stream_id = p_stream[i] and e.stream_version between p_from[i] and p_to[i]
      having count(*) filter (where e.type = 'TurnRequested')
          <> count(*) filter (where e.type in ('TurnCompleted', 'TurnFailed', 'TurnCancelled'))
        or count(*) filter (where e.type = 'RunStarted')
          <> count(*) filter (where e.type in ('RunCompleted', 'RunFailed', 'RunCancelled'))
        or count(*) filter (where e.type = 'TaskQueued') <> count(*) filter (where e.type = 'TaskEnded')
        or count(*) filter (where e.type = 'BudgetReserved')
          <> count(*) filter (where e.type in ('BudgetSettled', 'BudgetReleased', 'BudgetExpired'))
        or count(*) filter (where e.type = 'BudgetScopeFrozen')
          <> count(*) filter (where e.type = 'BudgetScopeUnfrozen')) then
      raise exception 'event stream % is not at rest', p_stream[i] using errcode = 'check_violation';
    end if;
  end loop;
  for i in 1 .. cardinality(p_stream) loop
    if starts_with(p_stream[i], 'task-') and antiphon_has_open_subtask(p_workspace[i], p_stream[i]) then
      raise exception 'event stream % has open tasks below it', p_stream[i] using errcode = 'check_violation';
    end if;
    select h.version, h.hash into head from stream_heads h
      where h.workspace = p_workspace[i] and h.stream_id = p_stream[i] for update;
    -- Read messages leave, and the rest of their stream stays.
    if head.version > p_to[i] and (starts_with(p_stream[i], 'agent-inbox-') or starts_with(p_stream[i], 'agent-topic-')) then
      select e.stream_version as version, e.hash into head from events e
        where e.workspace = p_workspace[i] and e.stream_id = p_stream[i] and e.stream_version = p_to[i];
    end if;
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
