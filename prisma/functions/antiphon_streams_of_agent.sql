-- Streams of an agent's sessions and tasks in the workspace of the transaction. A policy hides rows before any condition that
-- could leak them, so that the planner may not use the indexes on `data ->> 'agentId'` for other roles than the owner.
create or replace function antiphon_streams_of_agent(p_agent text) returns setof text
language sql stable security definer set search_path = public, pg_temp as $$
  select e.stream_id from events e
    where e.workspace = current_setting('antiphon.workspace', true) and e.type = 'SessionStarted'
      and e.data ->> 'agentId' = p_agent
  union all
  select e.stream_id from events e
    where e.workspace = current_setting('antiphon.workspace', true) and e.type = 'TaskStarted'
      and e.data ->> 'agentId' = p_agent
$$;
