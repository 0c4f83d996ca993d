-- The session of a turn. As in antiphon_streams_of_agent, a policy would keep the planner from an index on data.
create index events_turn_idx on events ((data ->> 'turnId')) where type = 'TurnRequested';

create function antiphon_find_turn(p_turn uuid) returns table (stream_id text, "position" bigint)
language sql stable security definer set search_path = public, pg_temp as $$
  select e.stream_id, e.position from events e
    where e.type = 'TurnRequested' and e.data ->> 'turnId' = p_turn::text
      and e.workspace = current_setting('antiphon.workspace', true)
    order by e.position limit 1
$$;
revoke all on function antiphon_find_turn from public;
grant execute on function antiphon_find_turn to antiphon_gateway;
