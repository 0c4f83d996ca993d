-- Deletes the rows that the archived events of one file produced, and those of parked streams of projections that no
-- longer exist. Returns their number; null when no archive is left to do and nothing was deleted.
create or replace function antiphon_delete_archived_rows() returns bigint
language plpgsql security definer set search_path = public, pg_temp as $$
declare
  archive record;
  deleted bigint := 0;
  gone bigint;
begin
  delete from projection_parked p
    where not exists (select from projection_checkpoints c where c.name = p.projection);
  get diagnostics deleted = row_count;
  select l.archive_id, l.cut_position into archive from log_archives l
    where l.rows_deleted_at is null order by l.archived_at limit 1 for update skip locked;
  if not found then
    return nullif(deleted, 0);
  end if;
  delete from agent_approvals p using archived_streams a
    where a.archive_id = archive.archive_id and starts_with(a.stream_id, 'session-')
      and p.workspace = a.workspace and 'session-' || p.session_id = a.stream_id
      and p.closed_at is not null and p.first_position <= archive.cut_position;
  get diagnostics gone = row_count;
  deleted := deleted + gone;
  delete from budget_reservations r using archived_streams a
    where a.archive_id = archive.archive_id and r.open_until is null and r.workspace = a.workspace
      and r.reservation_id = case when a.stream_id ~ '^budget-[0-9a-f-]{36}$' then substring(a.stream_id from 8)::uuid end;
  get diagnostics gone = row_count;
  update log_archives set rows_deleted_at = clock_timestamp() where archive_id = archive.archive_id;
  return deleted + gone;
end $$;
