-- Finds the forks of a session of the workspace of the transaction, the newest 10,000. A policy would keep the planner from
-- the index of origins.
create or replace function antiphon_forks_of(p_session text, p_upto bigint) returns setof uuid
language sql stable strict security definer set search_path = public, pg_temp as $$
  select substr(e.stream_id, 9)::uuid from events e
    where e.type = 'SessionForked' and e.workspace = current_setting('antiphon.workspace', true)
      and e.data #>> '{origin,sessionId}' = p_session and e.position <= p_upto
    order by e.position desc limit 10000
$$;
