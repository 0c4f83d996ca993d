-- Projection `agent-sessions`: one row an approval. Those that are pending are what people are shown, and what keeps a sweep
-- from taking over a turn that only waits for them.
create table agent_approvals (
  workspace text collate "C" not null,
  approval_id uuid not null,
  session_id uuid not null,
  turn_id uuid not null,
  call_id uuid not null,
  tool text collate "C" not null,
  input jsonb not null,
  digest text collate "C" not null,
  status text collate "C" not null,
  answer_by text collate "C" not null,
  requested_at timestamptz(3) not null,
  expires_at timestamptz(3) not null,
  escalate_to text collate "C",
  escalated_at timestamptz(3),
  answered_by text collate "C",
  closed_at timestamptz(3),
  reason text,
  first_position bigint not null,
  constraint agent_approvals_pkey primary key (workspace, approval_id)
) with (fillfactor = 70);
create index agent_approvals_list_idx on agent_approvals (workspace, first_position);
create index agent_approvals_pending_idx on agent_approvals (workspace, session_id) where status = 'pending';
create index agent_approvals_closed_idx on agent_approvals (closed_at) where closed_at is not null;

grant select, insert, update, delete on agent_approvals to antiphon_agent;
grant select on agent_approvals to antiphon_reader;
