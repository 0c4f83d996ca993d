-- The gateway lists sessions and events by agent; a session says its agent in its first event only.
create index events_session_agent_idx on events (workspace, (data ->> 'agentId')) where type = 'SessionStarted';
