-- Position of the newest event, or the base position of a log without events. Row-level security does not apply to it: behind a
-- policy, `max(position)` is planned as a scan of the whole log while the table has few rows, and a cached plan stays so.
-- A stable function reads on the snapshot of the statement that calls it.
create or replace function antiphon_head_position() returns bigint
language sql stable security definer
set search_path = public, pg_temp
as $$
  select greatest((select base_position from log_head where id = 1),
    coalesce((select position from events order by position desc limit 1), 0))
$$;
