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
