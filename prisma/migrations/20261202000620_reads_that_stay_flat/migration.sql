-- The newest sessions of a workspace, in the order of the list.
create index agent_sessions_last_idx on agent_sessions (workspace, last_position);

-- The sessions of a key. Without it, a turn of an entry of memory is found among all sessions of the workspace.
create index memory_sessions_key_idx on memory_sessions (key_hash, workspace);

-- While a table has no statistics, each index that begins with the workspace costs the same. A plan that is kept then reads
-- all sessions of a workspace by this one. So it does not begin with the workspace.
drop index memory_sessions_agent_idx;
create index memory_sessions_agent_idx on memory_sessions (agent_id, workspace);
drop index agent_tasks_parent_idx;
create index agent_tasks_parent_idx on agent_tasks (parent_task_id, workspace);
