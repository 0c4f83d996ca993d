-- Finds the session of a turn in the workspace of the transaction. As in antiphon_streams_of_agent, a policy would keep the
-- planner from an index on `data`.
create or replace function antiphon_find_turn(p_turn uuid) returns table (stream_id text, "position" bigint)
language sql stable security definer set search_path = public, pg_temp as $$
  select e.stream_id, e.position from events e
    where e.type = 'TurnRequested' and e.data ->> 'turnId' = p_turn::text
      and e.workspace = current_setting('antiphon.workspace', true)
    order by e.position limit 1
$$;
