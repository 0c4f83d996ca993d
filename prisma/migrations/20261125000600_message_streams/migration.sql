-- Messages of one stream, after a position. Without statistics the planner takes a smaller index of the same estimate:
-- that of the positions of all messages, or that of rare types, which read the messages of every other agent. The
-- expression keeps them out of the choice, as only the predicate of this index follows from it.
create index events_message_stream_idx on events (workspace, stream_id, position)
  where (type || '') = 'AgentMessageSent';
