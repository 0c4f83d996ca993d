-- Keeps a session's event stream as it is until the end of the transaction: metering releases a reservation only if no
-- call in the log cites it, and a start that commits between that look and the release would run without a budget.
-- Returns the version of the stream, or no row for a session without events. Metering may not update the heads itself.
create or replace function budget_hold_session(p_workspace text, p_session_id uuid) returns setof bigint
language sql security definer
set search_path = public, pg_temp
as $$
  select h.version from stream_heads h
  where h.workspace = p_workspace and h.stream_id = 'session-' || p_session_id
  for share
$$;
