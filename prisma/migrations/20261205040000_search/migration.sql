-- Search over messages, answers, names of chats and tasks: an index of the words of their events.
-- Text of an event that a search looks into: of a message, an answer, a name of a chat or a task. At most 100,000
-- characters. Null for an event without one.
create or replace function antiphon_search_text(p_type text, p_data jsonb) returns text
language sql immutable parallel safe as $$
  select left(case
    when p_type in ('TurnRequested', 'ChatMessageEdited') then p_data ->> 'content'
    when p_type in ('ModelCallCompleted', 'ModelCallAborted') then p_data ->> 'text'
    when p_type in ('ChatCreated', 'ChatRenamed') then p_data ->> 'name'
    when p_type = 'TaskQueued' then coalesce(p_data ->> 'title', '') || E'\n' || coalesce(p_data ->> 'prompt', '')
  end, 100000)
$$;
-- Words of a text, as an index has them. Punctuation of ASCII separates words, so that a path or an address is found by
-- each part of it. Each Chinese, Japanese or Korean character is a word.
create or replace function antiphon_search_words(p_text text) returns tsvector
language sql immutable parallel safe as $$
  select to_tsvector('pg_catalog.simple', regexp_replace(
    regexp_replace(p_text, '[\x01-\x2f\x3a-\x40\x5b-\x60\x7b-\x7f]+', ' ', 'g'),
    '([\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af])', ' \1 ', 'g'))
$$;

-- A short list of pending entries: an append that finds it full moves it into the index.
create index events_search_idx on events using gin (antiphon_search_words(antiphon_search_text(type, data)))
  with (fastupdate = on, gin_pending_list_limit = 256)
  where type in ('TurnRequested', 'ModelCallCompleted', 'ModelCallAborted', 'ChatMessageEdited', 'ChatCreated', 'ChatRenamed',
    'TaskQueued');

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
revoke all on function antiphon_search(text, text[], bigint, bigint, integer) from public;
grant execute on function antiphon_search(text, text[], bigint, bigint, integer) to antiphon_gateway;
