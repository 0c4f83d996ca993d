-- What prisma/schema cannot describe: storage, check constraints, partial indexes and indexes of expressions, by table.
-- Written by libs/platform/database/functions.int.spec.ts with ANTIPHON_WRITE_LISTS=1.

alter table agent_activity set (fillfactor=50);

alter table agent_agents set (fillfactor=70);
CREATE INDEX agent_agents_error_idx ON agent_agents USING btree (workspace, agent_id) WHERE (status = 'error'::text);

alter table agent_approvals set (fillfactor=70);
CREATE INDEX agent_approvals_closed_idx ON agent_approvals USING btree (closed_at) WHERE (closed_at IS NOT NULL);
CREATE INDEX agent_approvals_pending_idx ON agent_approvals USING btree (workspace, session_id) WHERE (status = 'pending'::text);

CREATE INDEX agent_channel_deliveries_open_idx ON agent_channel_deliveries USING btree (first_position) WHERE (state = ANY (ARRAY['received'::text, 'answering'::text, 'queued'::text, 'sending'::text]));

alter table agent_heartbeats set (fillfactor=50);

alter table agent_runs set (fillfactor=70);
CREATE INDEX agent_runs_open_idx ON agent_runs USING btree (first_position) WHERE (ended_at IS NULL);

alter table agent_sessions set (fillfactor=70);
CREATE INDEX agent_sessions_open_idx ON agent_sessions USING btree (workspace, session_id) WHERE (open_turns > 0);

alter table agent_tasks set (fillfactor=70);
CREATE INDEX agent_tasks_open_idx ON agent_tasks USING btree (first_position) WHERE (ended_at IS NULL);

alter table agent_workflows set (fillfactor=70);

alter table api_keys add constraint api_keys_status_check CHECK (status = ANY (ARRAY['pending'::text, 'active'::text, 'revoking'::text, 'revoked'::text]));

alter table archive_requests add constraint archive_requests_file CHECK (file !~ '[/\\]'::text AND (file <> ALL (ARRAY[''::text, '.'::text, '..'::text])));

alter table budget_balances set (fillfactor=50);
alter table budget_balances add constraint budget_balances_not_negative CHECK (LEAST(reserved_tokens, settled_tokens, reserved_micro_usd, settled_micro_usd) >= 0);
CREATE INDEX budget_balances_period_idx ON budget_balances USING btree (scope_key) WHERE ((scope_key ~~ 'day/%'::text) OR (scope_key ~~ 'month/%'::text));

alter table budget_limits add constraint budget_limits_not_negative CHECK (LEAST(limit_tokens, limit_micro_usd, 0::bigint) >= 0);

alter table budget_reservations set (fillfactor=70);
alter table budget_reservations add constraint budget_reservations_open CHECK ((status = 'reserved'::text) = (open_until IS NOT NULL));
alter table budget_reservations add constraint budget_reservations_status CHECK (status = ANY (ARRAY['reserved'::text, 'settled'::text, 'released'::text, 'expired_estimated'::text]));
CREATE INDEX budget_reservations_open_idx ON budget_reservations USING btree (open_until) WHERE (open_until IS NOT NULL);

alter table budget_rules set (fillfactor=50);
alter table budget_rules add constraint budget_rules_price CHECK ((input_price IS NULL) = (output_price IS NULL) AND LEAST(input_price, output_price, 0::bigint) >= 0);

alter table budget_usage set (fillfactor=50);

CREATE INDEX events_agent_message_idx ON events USING btree (workspace, stream_id, type, "position") WHERE (type = ANY (ARRAY['AgentMessageSent'::text, 'InboxRead'::text, 'TopicSubscribed'::text, 'TopicUnsubscribed'::text]));
CREATE INDEX events_attached_digest_idx ON events USING btree (workspace, ((data ->> 'digest'::text))) WHERE (type = 'ChatFileAttached'::text);
CREATE INDEX events_deleted_message_idx ON events USING btree (workspace, stream_id) WHERE (type = 'ChatMessageDeleted'::text);
CREATE INDEX events_erased_digest_idx ON events USING btree (workspace, ((data ->> 'digest'::text))) WHERE (type = 'FileBytesErased'::text);
CREATE INDEX events_file_digest_idx ON events USING btree (workspace, ((data ->> 'digest'::text))) WHERE (category = ANY (ARRAY['file'::text, 'chat'::text]));
CREATE INDEX events_file_moved_idx ON events USING btree (workspace, md5((data ->> 'to'::text))) WHERE (type = 'FileMoved'::text);
CREATE INDEX events_file_path_idx ON events USING btree (workspace, md5((data ->> 'path'::text))) WHERE ((category = ANY (ARRAY['file'::text, 'chat'::text])) AND ((data ->> 'path'::text) IS NOT NULL));
CREATE INDEX events_forks_idx ON events USING btree (workspace, ((data #>> '{origin,sessionId}'::text[]))) WHERE (type = 'SessionForked'::text);
CREATE INDEX events_message_position_idx ON events USING btree ("position") WHERE (type = 'AgentMessageSent'::text);
CREATE INDEX events_message_stream_idx ON events USING btree (workspace, stream_id, "position") WHERE ((type || ''::text) = 'AgentMessageSent'::text);
CREATE INDEX events_messages_of_workspace_idx ON events USING btree (workspace, "position") WHERE (type = 'AgentMessageSent'::text);
CREATE INDEX events_plan_runs_idx ON events USING btree ("position") WHERE (type = ANY (ARRAY['PlanRunStarted'::text, 'PlanRunEnded'::text]));
CREATE INDEX events_rare_type_idx ON events USING btree (workspace, type, "position") WHERE (type <> ALL (ARRAY['TurnRequested'::text, 'ModelCallStarted'::text, 'ModelCallCompleted'::text, 'ToolCallRequested'::text, 'ToolCallClaimed'::text, 'ToolCallCompleted'::text, 'TurnCompleted'::text, 'BudgetReserved'::text, 'BudgetSettled'::text]));
CREATE INDEX events_search_idx ON events USING gin (antiphon_search_words(antiphon_search_text(type, data))) WITH (fastupdate='on', gin_pending_list_limit='256') WHERE (type = ANY (ARRAY['TurnRequested'::text, 'ModelCallCompleted'::text, 'ModelCallAborted'::text, 'ChatMessageEdited'::text, 'ChatCreated'::text, 'ChatRenamed'::text, 'TaskQueued'::text]));
CREATE INDEX events_session_agent_idx ON events USING btree (workspace, ((data ->> 'agentId'::text))) WHERE (type = 'SessionStarted'::text);
CREATE INDEX events_stored_result_idx ON events USING btree (workspace, ((data #>> '{stored,digest}'::text[]))) WHERE ((type = 'ToolCallCompleted'::text) AND (data ? 'stored'::text));
CREATE INDEX events_tool_calls_idx ON events USING btree (workspace, recorded_at) WHERE (type = ANY (ARRAY['ToolCallRequested'::text, 'ToolCallCompleted'::text, 'ToolCallFailed'::text, 'ToolCallUnknown'::text]));
CREATE INDEX events_turn_idx ON events USING btree (((data ->> 'turnId'::text))) WHERE (type = 'TurnRequested'::text);

CREATE INDEX file_blobs_erased_idx ON file_blobs USING btree (workspace, digest) WHERE (erased_at IS NOT NULL);
CREATE INDEX file_blobs_sweep_idx ON file_blobs USING btree (written_at) WHERE (NOT is_cited);
CREATE INDEX file_blobs_uncited_idx ON file_blobs USING btree (workspace) INCLUDE (size) WHERE (NOT is_cited);

alter table leases set (fillfactor=50);

alter table log_archives add constraint log_archives_file CHECK (file !~ '[/\\]'::text AND (file <> ALL (ARRAY[''::text, '.'::text, '..'::text])));

alter table log_rates set (fillfactor=50);

alter table memory_facts add constraint memory_facts_confidence CHECK (confidence >= 0::double precision AND confidence <= 1::double precision);
CREATE UNIQUE INDEX memory_facts_active_key ON memory_facts USING btree (workspace, key_hash, subject, predicate) WHERE (superseded_at IS NULL);

alter table memory_sessions set (fillfactor=50);

alter table projection_checkpoints set (fillfactor=50);

alter table provider_breakers set (fillfactor=70);

alter table stream_heads set (fillfactor=70);
