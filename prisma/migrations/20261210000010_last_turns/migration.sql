-- Time at which the newest turn of an agent began or ended. Nodes of runs have no heartbeat.
alter table agent_activity add column last_turn_at timestamptz(3);
update agent_activity t set last_turn_at = c.at from (
  select workspace, agent_id, max(at) as at from agent_state_changes
  where from_state = 'working' or to_state = 'working' group by workspace, agent_id) c
  where c.workspace = t.workspace and c.agent_id = t.agent_id;
