-- Entries of memory are listed by agent, over all sessions of it.
create index memory_sessions_agent_idx on memory_sessions (workspace, agent_id);
