-- Finds events of the workspace of the transaction by the words of their texts, in a range of positions, newest first. As
-- in antiphon_find_turn, a policy would keep the planner from an index on `data`. The hits are materialized: the planner
-- would read the range in its order otherwise, and compute the words of each event.
create or replace function antiphon_search(p_query text, p_types text[], p_after bigint, p_upto bigint, p_limit integer)
returns table ("position" bigint, stream_id text, type text, turn_id text, part text, recorded_at timestamptz, content text, data jsonb)
language sql stable security definer set search_path = public, pg_temp as $$
  with hits as materialized (
    select e.position from events e
      where e.type in ('TurnRequested', 'ModelCallCompleted', 'ModelCallAborted', 'ChatMessageEdited', 'ChatCreated',
          'ChatRenamed', 'TaskQueued')
        and antiphon_search_words(antiphon_search_text(e.type, e.data)) @@ to_tsquery('pg_catalog.simple', p_query)
        and e.type = any (p_types) and e.position > p_after and e.position <= p_upto
        and e.workspace = current_setting('antiphon.workspace', true)),
  newest as (select h.position from hits h order by h.position desc limit p_limit)
  select e.position, e.stream_id, e.type, e.data ->> 'turnId', e.data ->> 'part', e.recorded_at,
      antiphon_search_text(e.type, e.data),
      case when e.type in ('ChatCreated', 'ChatRenamed', 'TaskQueued') then e.data - 'prompt' else '{}' end
    from newest n join events e on e.position = n.position order by e.position desc
$$;
