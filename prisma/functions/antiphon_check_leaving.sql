-- Refuses the deletion of events, by any role, unless a checkpoint states that they were archived.
create or replace function antiphon_check_leaving() returns trigger language plpgsql set search_path = public, pg_temp as $$
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
