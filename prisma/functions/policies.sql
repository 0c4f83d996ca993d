-- Row-level security and policies of the migrated database, by table (docs/adr/0150).
-- Written by libs/platform/database/functions.int.spec.ts with ANTIPHON_WRITE_LISTS=1.

alter table agent_activity enable row level security;
create policy all_workspaces on agent_activity
  to antiphon_agent, antiphon_archiver, antiphon_memory, antiphon_metering, antiphon_reader
  using (current_setting('antiphon.workspace'::text, true) = '*'::text);
create policy own_workspace on agent_activity
  using (workspace = current_setting('antiphon.workspace'::text, true));

alter table agent_agents enable row level security;
create policy all_workspaces on agent_agents
  to antiphon_agent, antiphon_archiver, antiphon_memory, antiphon_metering, antiphon_reader
  using (current_setting('antiphon.workspace'::text, true) = '*'::text);
create policy own_workspace on agent_agents
  using (workspace = current_setting('antiphon.workspace'::text, true));

alter table agent_approvals enable row level security;
create policy all_workspaces on agent_approvals
  to antiphon_agent, antiphon_archiver, antiphon_memory, antiphon_metering, antiphon_reader
  using (current_setting('antiphon.workspace'::text, true) = '*'::text);
create policy own_workspace on agent_approvals
  using (workspace = current_setting('antiphon.workspace'::text, true));

alter table agent_channel_deliveries enable row level security;
create policy all_workspaces on agent_channel_deliveries
  to antiphon_agent, antiphon_archiver, antiphon_memory, antiphon_metering, antiphon_reader
  using (current_setting('antiphon.workspace'::text, true) = '*'::text);
create policy own_workspace on agent_channel_deliveries
  using (workspace = current_setting('antiphon.workspace'::text, true));

alter table agent_generations enable row level security;
create policy all_workspaces on agent_generations
  to antiphon_agent, antiphon_archiver, antiphon_memory, antiphon_metering, antiphon_reader
  using (current_setting('antiphon.workspace'::text, true) = '*'::text);
create policy own_workspace on agent_generations
  using (workspace = current_setting('antiphon.workspace'::text, true));

alter table agent_heartbeats enable row level security;
create policy all_workspaces on agent_heartbeats
  to antiphon_agent, antiphon_archiver, antiphon_memory, antiphon_metering, antiphon_reader
  using (current_setting('antiphon.workspace'::text, true) = '*'::text);
create policy own_workspace on agent_heartbeats
  using (workspace = current_setting('antiphon.workspace'::text, true));

alter table agent_metrics enable row level security;
create policy all_workspaces on agent_metrics
  to antiphon_agent, antiphon_archiver, antiphon_memory, antiphon_metering, antiphon_reader
  using (current_setting('antiphon.workspace'::text, true) = '*'::text);
create policy own_workspace on agent_metrics
  using (workspace = current_setting('antiphon.workspace'::text, true));

alter table agent_runs enable row level security;
create policy all_workspaces on agent_runs
  to antiphon_agent, antiphon_archiver, antiphon_memory, antiphon_metering, antiphon_reader
  using (current_setting('antiphon.workspace'::text, true) = '*'::text);
create policy own_workspace on agent_runs
  using (workspace = current_setting('antiphon.workspace'::text, true));

alter table agent_session_agents enable row level security;
create policy all_workspaces on agent_session_agents
  to antiphon_agent, antiphon_archiver, antiphon_memory, antiphon_metering, antiphon_reader
  using (current_setting('antiphon.workspace'::text, true) = '*'::text);
create policy own_workspace on agent_session_agents
  using (workspace = current_setting('antiphon.workspace'::text, true));

alter table agent_session_snapshots enable row level security;
create policy all_workspaces on agent_session_snapshots
  to antiphon_agent, antiphon_archiver, antiphon_memory, antiphon_metering, antiphon_reader
  using (current_setting('antiphon.workspace'::text, true) = '*'::text);
create policy own_workspace on agent_session_snapshots
  using (workspace = current_setting('antiphon.workspace'::text, true));

alter table agent_sessions enable row level security;
create policy all_workspaces on agent_sessions
  to antiphon_agent, antiphon_archiver, antiphon_memory, antiphon_metering, antiphon_reader
  using (current_setting('antiphon.workspace'::text, true) = '*'::text);
create policy own_workspace on agent_sessions
  using (workspace = current_setting('antiphon.workspace'::text, true));

alter table agent_state_changes enable row level security;
create policy all_workspaces on agent_state_changes
  to antiphon_agent, antiphon_archiver, antiphon_memory, antiphon_metering, antiphon_reader
  using (current_setting('antiphon.workspace'::text, true) = '*'::text);
create policy own_workspace on agent_state_changes
  using (workspace = current_setting('antiphon.workspace'::text, true));

alter table agent_tasks enable row level security;
create policy all_workspaces on agent_tasks
  to antiphon_agent, antiphon_archiver, antiphon_memory, antiphon_metering, antiphon_reader
  using (current_setting('antiphon.workspace'::text, true) = '*'::text);
create policy own_workspace on agent_tasks
  using (workspace = current_setting('antiphon.workspace'::text, true));

alter table agent_workflows enable row level security;
create policy all_workspaces on agent_workflows
  to antiphon_agent, antiphon_archiver, antiphon_memory, antiphon_metering, antiphon_reader
  using (current_setting('antiphon.workspace'::text, true) = '*'::text);
create policy own_workspace on agent_workflows
  using (workspace = current_setting('antiphon.workspace'::text, true));

alter table api_keys enable row level security;
create policy api_keys_of_gateway on api_keys
  to antiphon_gateway
  using (workspace = current_setting('antiphon.workspace'::text, true))
  with check (workspace = current_setting('antiphon.workspace'::text, true));

alter table archived_streams enable row level security;
create policy all_workspaces on archived_streams
  to antiphon_agent, antiphon_archiver, antiphon_memory, antiphon_metering, antiphon_reader
  using (current_setting('antiphon.workspace'::text, true) = '*'::text);
create policy own_workspace on archived_streams
  using (workspace = current_setting('antiphon.workspace'::text, true));
create policy plugin_facts on archived_streams as restrictive for select
  to antiphon_sandbox
  using (starts_with(stream_id, 'plugin-'::text));

alter table budget_balances enable row level security;
create policy all_workspaces on budget_balances
  to antiphon_agent, antiphon_archiver, antiphon_memory, antiphon_metering, antiphon_reader
  using (current_setting('antiphon.workspace'::text, true) = '*'::text);
create policy own_workspace on budget_balances
  using (workspace = current_setting('antiphon.workspace'::text, true));

alter table budget_limits enable row level security;
create policy all_workspaces on budget_limits
  to antiphon_agent, antiphon_archiver, antiphon_memory, antiphon_metering, antiphon_reader
  using (current_setting('antiphon.workspace'::text, true) = '*'::text);
create policy own_workspace on budget_limits
  using (workspace = current_setting('antiphon.workspace'::text, true));

alter table budget_reservations enable row level security;
create policy all_workspaces on budget_reservations
  to antiphon_agent, antiphon_archiver, antiphon_memory, antiphon_metering, antiphon_reader
  using (current_setting('antiphon.workspace'::text, true) = '*'::text);
create policy own_workspace on budget_reservations
  using (workspace = current_setting('antiphon.workspace'::text, true));

alter table budget_rules enable row level security;
create policy all_workspaces on budget_rules
  to antiphon_agent, antiphon_archiver, antiphon_memory, antiphon_metering, antiphon_reader
  using (current_setting('antiphon.workspace'::text, true) = '*'::text);
create policy own_workspace on budget_rules
  using (workspace = current_setting('antiphon.workspace'::text, true));

alter table budget_usage enable row level security;
create policy all_workspaces on budget_usage
  to antiphon_agent, antiphon_archiver, antiphon_memory, antiphon_metering, antiphon_reader
  using (current_setting('antiphon.workspace'::text, true) = '*'::text);
create policy own_workspace on budget_usage
  using (workspace = current_setting('antiphon.workspace'::text, true));

alter table channel_sends enable row level security;
create policy channel_sends_of_sandbox on channel_sends
  to antiphon_sandbox
  using (current_setting('antiphon.workspace'::text, true) = workspace)
  with check (current_setting('antiphon.workspace'::text, true) = workspace);

alter table events enable row level security;
create policy all_workspaces on events
  to antiphon_agent, antiphon_archiver, antiphon_memory, antiphon_metering, antiphon_reader
  using (current_setting('antiphon.workspace'::text, true) = '*'::text);
create policy no_identities on events as restrictive for select
  to antiphon_agent
  using (category <> ALL (ARRAY['key'::text, 'workspace'::text]));
create policy own_categories on events as restrictive for select
  to antiphon_metering
  using (category = ANY (ARRAY['budget'::text, 'session'::text]));
create policy own_workspace on events
  using (workspace = current_setting('antiphon.workspace'::text, true));
create policy plugin_facts on events as restrictive for select
  to antiphon_sandbox
  using (category = 'plugin'::text);

alter table file_blobs enable row level security;
create policy all_workspaces on file_blobs
  to antiphon_agent, antiphon_archiver, antiphon_memory, antiphon_metering, antiphon_reader
  using (current_setting('antiphon.workspace'::text, true) = '*'::text);
create policy own_workspace on file_blobs
  using (workspace = current_setting('antiphon.workspace'::text, true));

alter table file_tree_snapshots enable row level security;
create policy all_workspaces on file_tree_snapshots
  to antiphon_agent, antiphon_archiver, antiphon_memory, antiphon_metering, antiphon_reader
  using (current_setting('antiphon.workspace'::text, true) = '*'::text);
create policy own_workspace on file_tree_snapshots
  using (workspace = current_setting('antiphon.workspace'::text, true));

alter table idempotency enable row level security;
create policy all_workspaces on idempotency
  to antiphon_agent, antiphon_archiver, antiphon_memory, antiphon_metering, antiphon_reader
  using (current_setting('antiphon.workspace'::text, true) = '*'::text);
create policy own_workspace on idempotency
  using (workspace = current_setting('antiphon.workspace'::text, true));

alter table leases enable row level security;
create policy all_workspaces on leases
  to antiphon_agent, antiphon_archiver, antiphon_memory, antiphon_metering, antiphon_reader
  using (current_setting('antiphon.workspace'::text, true) = '*'::text);
create policy own_workspace on leases
  using (workspace = current_setting('antiphon.workspace'::text, true));

alter table log_rates enable row level security;
create policy all_workspaces on log_rates
  to antiphon_agent, antiphon_archiver, antiphon_memory, antiphon_metering, antiphon_reader
  using (current_setting('antiphon.workspace'::text, true) = '*'::text);
create policy own_workspace on log_rates
  using (workspace = current_setting('antiphon.workspace'::text, true));

alter table memory_facts enable row level security;
create policy all_workspaces on memory_facts
  to antiphon_agent, antiphon_archiver, antiphon_memory, antiphon_metering, antiphon_reader
  using (current_setting('antiphon.workspace'::text, true) = '*'::text);
create policy own_workspace on memory_facts
  using (workspace = current_setting('antiphon.workspace'::text, true));

alter table memory_sessions enable row level security;
create policy all_workspaces on memory_sessions
  to antiphon_agent, antiphon_archiver, antiphon_memory, antiphon_metering, antiphon_reader
  using (current_setting('antiphon.workspace'::text, true) = '*'::text);
create policy own_workspace on memory_sessions
  using (workspace = current_setting('antiphon.workspace'::text, true));

alter table plugin_modules enable row level security;
create policy plugin_modules_of_sandbox on plugin_modules
  to antiphon_sandbox
  using (current_setting('antiphon.workspace'::text, true) = workspace)
  with check (current_setting('antiphon.workspace'::text, true) = workspace);

alter table plugin_values enable row level security;
create policy plugin_values_of_sandbox on plugin_values
  to antiphon_sandbox
  using (current_setting('antiphon.workspace'::text, true) = workspace)
  with check (current_setting('antiphon.workspace'::text, true) = workspace);

alter table projection_checkpoints enable row level security;
create policy any_projection on projection_checkpoints for select
  using (true);
create policy own_agent on projection_checkpoints
  to antiphon_agent
  using (split_part(name, '-'::text, 1) = 'agent'::text);
create policy own_budget on projection_checkpoints
  to antiphon_metering
  using (split_part(name, '-'::text, 1) = 'budget'::text);
create policy own_memory on projection_checkpoints
  to antiphon_memory
  using (split_part(name, '-'::text, 1) = 'memory'::text);

alter table projection_parked enable row level security;
create policy all_workspaces on projection_parked for select
  to antiphon_agent, antiphon_archiver, antiphon_memory, antiphon_metering, antiphon_reader
  using (current_setting('antiphon.workspace'::text, true) = '*'::text);
create policy own_agent on projection_parked
  to antiphon_agent
  using ((split_part(projection, '-'::text, 1) = 'agent'::text) AND (current_setting('antiphon.workspace'::text, true) = '*'::text));
create policy own_budget on projection_parked
  to antiphon_metering
  using ((split_part(projection, '-'::text, 1) = 'budget'::text) AND (current_setting('antiphon.workspace'::text, true) = '*'::text));
create policy own_memory on projection_parked
  to antiphon_memory
  using ((split_part(projection, '-'::text, 1) = 'memory'::text) AND (current_setting('antiphon.workspace'::text, true) = '*'::text));
create policy own_workspace on projection_parked for select
  using (workspace = current_setting('antiphon.workspace'::text, true));

alter table projection_snapshot_rows enable row level security;
create policy all_workspaces on projection_snapshot_rows for select
  to antiphon_agent, antiphon_archiver, antiphon_memory, antiphon_metering, antiphon_reader
  using (current_setting('antiphon.workspace'::text, true) = '*'::text);
create policy own_agent on projection_snapshot_rows
  to antiphon_agent
  using ((split_part(projection, '-'::text, 1) = 'agent'::text) AND ((current_setting('antiphon.workspace'::text, true) = '*'::text) OR ((current_setting('antiphon.workspace'::text, true) = scope) AND (workspace = scope))));
create policy own_budget on projection_snapshot_rows
  to antiphon_metering
  using ((split_part(projection, '-'::text, 1) = 'budget'::text) AND ((current_setting('antiphon.workspace'::text, true) = '*'::text) OR ((current_setting('antiphon.workspace'::text, true) = scope) AND (workspace = scope))));
create policy own_workspace on projection_snapshot_rows for select
  using (workspace = current_setting('antiphon.workspace'::text, true));

alter table projection_snapshots enable row level security;
create policy all_workspaces on projection_snapshots for select
  to antiphon_agent, antiphon_archiver, antiphon_memory, antiphon_metering, antiphon_reader
  using (current_setting('antiphon.workspace'::text, true) = '*'::text);
create policy own_agent on projection_snapshots
  to antiphon_agent
  using ((split_part(projection, '-'::text, 1) = 'agent'::text) AND ((current_setting('antiphon.workspace'::text, true) = '*'::text) OR (current_setting('antiphon.workspace'::text, true) = workspace)));
create policy own_budget on projection_snapshots
  to antiphon_metering
  using ((split_part(projection, '-'::text, 1) = 'budget'::text) AND ((current_setting('antiphon.workspace'::text, true) = '*'::text) OR (current_setting('antiphon.workspace'::text, true) = workspace)));
create policy shared_or_own on projection_snapshots for select
  using (workspace = ANY (ARRAY['*'::text, current_setting('antiphon.workspace'::text, true)]));

alter table provider_breakers enable row level security;
create policy all_workspaces on provider_breakers
  to antiphon_agent, antiphon_archiver, antiphon_memory, antiphon_metering, antiphon_reader
  using (current_setting('antiphon.workspace'::text, true) = '*'::text);
create policy own_workspace on provider_breakers
  using (workspace = current_setting('antiphon.workspace'::text, true));

alter table provider_credentials enable row level security;
create policy provider_credentials_of_agent on provider_credentials
  to antiphon_agent
  using ((current_setting('antiphon.workspace'::text, true) = workspace) OR (current_setting('antiphon.workspace'::text, true) = '*'::text))
  with check ((current_setting('antiphon.workspace'::text, true) = workspace) OR (current_setting('antiphon.workspace'::text, true) = '*'::text));

alter table stream_heads enable row level security;
create policy all_workspaces on stream_heads
  to antiphon_agent, antiphon_archiver, antiphon_memory, antiphon_metering, antiphon_reader
  using (current_setting('antiphon.workspace'::text, true) = '*'::text);
create policy own_workspace on stream_heads
  using (workspace = current_setting('antiphon.workspace'::text, true));
create policy plugin_facts on stream_heads as restrictive for select
  to antiphon_sandbox
  using (starts_with(stream_id, 'plugin-'::text));

alter table work_starts enable row level security;
create policy own_rows on work_starts
  using (owner = CURRENT_USER)
  with check (owner = CURRENT_USER);

alter table workspaces enable row level security;
create policy workspaces_of_gateway on workspaces
  to antiphon_gateway
  using ((current_setting('antiphon.workspace'::text, true) = workspace) OR (current_setting('antiphon.workspace'::text, true) = 'default'::text))
  with check ((current_setting('antiphon.workspace'::text, true) = workspace) OR (current_setting('antiphon.workspace'::text, true) = 'default'::text));
