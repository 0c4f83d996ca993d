-- The end of the whole log, for a gateway that follows the events of one workspace. Row-level security shows it the
-- positions of that workspace only, and it would read over the events of all others again and again.
create or replace function antiphon_log_head(out head bigint, out epoch bigint)
language sql stable security definer set search_path = public, pg_temp as $$
  select greatest(h.base_position, coalesce((select max(e.position) from events e), 0)), h.epoch
  from log_head h where h.id = 1
$$;
