-- Finds sessions of the workspace of the transaction by the words of their titles: the beginning of the first message, or the
-- name of the chat. A deleted message, a deleted chat and a former name are no titles. At most 10,000 hits, the newest, are
-- looked at. As in antiphon_search, a policy would keep the planner from the index of words.
create or replace function antiphon_find_titles(p_query text, p_upto bigint) returns setof uuid
language sql stable strict security definer set search_path = public, pg_temp as $$
  with hits as materialized (
    select e.position from events e
      where e.type in ('TurnRequested', 'ModelCallCompleted', 'ModelCallAborted', 'ChatMessageEdited', 'ChatCreated',
          'ChatRenamed', 'TaskQueued')
        and antiphon_search_words(antiphon_search_text(e.type, e.data)) @@ to_tsquery('pg_catalog.simple', p_query)
        and (e.type in ('ChatCreated', 'ChatRenamed') or (e.type = 'TurnRequested' and e.stream_version <= 10))
        and e.position <= p_upto and e.workspace = current_setting('antiphon.workspace', true)),
  newest as (
    select e.stream_id, e.stream_version, e.type, e.data
      from (select h.position from hits h order by h.position desc limit 10000) n join events e on e.position = n.position)
  select substr(n.stream_id, 9)::uuid from newest n
    where n.type = 'TurnRequested'
      and antiphon_search_words(left(n.data ->> 'content', 200)) @@ to_tsquery('pg_catalog.simple', p_query)
      and not exists (select from events f where f.workspace = current_setting('antiphon.workspace', true)
        and f.stream_id = n.stream_id and f.stream_version < n.stream_version and f.type = 'TurnRequested')
      and not exists (select from events d where d.workspace = current_setting('antiphon.workspace', true)
        and d.stream_id = n.stream_id and d.type = 'ChatMessageDeleted' and d.data ->> 'turnId' = n.data ->> 'turnId'
        and d.data ->> 'part' = 'message')
  union
  select (c.data ->> 'sessionId')::uuid from newest n
    join events c on c.workspace = current_setting('antiphon.workspace', true) and c.stream_id = n.stream_id
      and c.stream_version = 1 and c.type = 'ChatCreated'
    where n.type <> 'TurnRequested'
      and not exists (select from events l where l.workspace = current_setting('antiphon.workspace', true)
        and l.stream_id = n.stream_id and l.stream_version > n.stream_version and l.type in ('ChatRenamed', 'ChatDeleted')
        and l.position <= p_upto)
$$;
