-- The messages of a workspace are listed by position. The index of all workspaces would be scanned past the messages of others.
create index events_messages_of_workspace_idx on events (workspace, position) where type = 'AgentMessageSent';
