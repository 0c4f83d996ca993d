-- Inboxes and topics are read after a position, never from their beginning.
create index events_agent_message_idx on events (workspace, stream_id, type, position)
  where type in ('AgentMessageSent', 'InboxRead', 'TopicSubscribed', 'TopicUnsubscribed');
-- Each agent process reads the newest messages of all workspaces, to know which inboxes have news.
create index events_message_position_idx on events (position) where type = 'AgentMessageSent';
