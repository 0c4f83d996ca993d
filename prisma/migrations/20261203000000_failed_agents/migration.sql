-- The few agents in error are read every second, and by each health report.
create index agent_agents_error_idx on agent_agents (workspace, agent_id) where status = 'error';
