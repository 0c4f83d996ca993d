-- Ends a restore of an archive, in its transaction. Requires that all events are back and that every chain ends with the hash
-- of its checkpoint.
create or replace function antiphon_restore_archive(p_archive uuid) returns void
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
