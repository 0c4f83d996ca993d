-- Returns the last version of an inbox or a topic that may leave with all versions before it; 0 for none. What stays: an
-- unread message of a living agent, the cursor of its inbox, the topics that it follows, and all that follows these in the
-- stream. The result only grows: a cursor never moves back, and a new agent reads only what comes after it.
create or replace function antiphon_messages_that_leave(p_workspace text, p_stream text, p_cut bigint) returns bigint
language plpgsql stable security definer set search_path = public, pg_temp as $$
declare
  own text;
  keep_from bigint;
  up_to bigint;
  topic_name text;
begin
  if starts_with(p_stream, 'agent-inbox-') then
    own := 'agent-' || substr(p_stream, length('agent-inbox-') + 1);
    if not exists (
      select from events e where e.workspace = p_workspace and e.stream_id = own and e.type = 'AgentTerminated') then
      select e.position, (e.data ->> 'upTo')::bigint into keep_from, up_to from events e
        where e.workspace = p_workspace and e.stream_id = p_stream and e.type = 'InboxRead'
        order by e.position desc limit 1;
      select least(keep_from, min(e.position)) into keep_from from events e
        where e.workspace = p_workspace and e.stream_id = p_stream and e.type = 'AgentMessageSent'
          and e.position > coalesce(up_to, 0);
      select least(keep_from, min(newest.position)) into keep_from from (
        select distinct on (e.data ->> 'topic') e.type, e.position from events e
        where e.workspace = p_workspace and e.stream_id = p_stream
          and e.type in ('TopicSubscribed', 'TopicUnsubscribed')
        order by e.data ->> 'topic', e.position desc) newest
        where newest.type = 'TopicSubscribed';
    end if;
  elsif starts_with(p_stream, 'agent-topic-') then
    select e.data -> 'to' ->> 'topic' into topic_name from events e
      where e.workspace = p_workspace and e.stream_id = p_stream order by e.stream_version limit 1;
    select min(unread.position) into keep_from
    from (
      -- Those who read it, and from where: every living agent, or the living followers of the topic.
      select a.data ->> 'agentId' as agent_id, a.position as since, substr(a.stream_id, length('agent-') + 1) as id
        from events a
        where topic_name is null and a.workspace = p_workspace and a.stream_version = 1 and a.type = 'AgentSpawned'
          and a.stream_id >= 'agent-' and a.stream_id < 'agent.'
      union all
      select newest.agent_id, newest.position, newest.id from (
        select distinct on (s.stream_id) s.type, s.data ->> 'agentId' as agent_id, s.position,
          substr(s.stream_id, length('agent-inbox-') + 1) as id
        from events s
        where topic_name is not null and s.workspace = p_workspace
          and s.stream_id >= 'agent-inbox-' and s.stream_id < 'agent-inbox.'
          and s.type in ('TopicSubscribed', 'TopicUnsubscribed') and s.data ->> 'topic' = topic_name
        order by s.stream_id, s.position desc) newest
        where newest.type = 'TopicSubscribed'
    ) reader
    cross join lateral (
      select greatest(reader.since, coalesce((select (r.data ->> 'upTo')::bigint from events r
        where r.workspace = p_workspace and r.stream_id = 'agent-inbox-' || reader.id and r.type = 'InboxRead'
        order by r.position desc limit 1), 0)) as up_to
    ) seen
    cross join lateral (
      select m.position from events m
        where m.workspace = p_workspace and m.stream_id = p_stream and m.type = 'AgentMessageSent'
          and m.position > seen.up_to and m.data ->> 'from' <> 'agent/' || reader.agent_id
        order by m.position limit 1
    ) unread
    where not exists (
      select from events t
        where t.workspace = p_workspace and t.stream_id = 'agent-' || reader.id and t.type = 'AgentTerminated');
  else
    return 0;
  end if;
  return coalesce((select max(e.stream_version) from events e
    where e.workspace = p_workspace and e.stream_id = p_stream
      and e.position <= least(p_cut, coalesce(keep_from - 1, p_cut))), 0);
end $$;
