-- Inserts lines of an archive file as they were. Each line is `to_jsonb` of a row. Refuses lines that the archive does not have.
create or replace function antiphon_restore_events(p_archive uuid, p_lines text[]) returns bigint
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
