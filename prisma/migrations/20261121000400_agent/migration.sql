-- What the agent service keeps beside the log: a projection of sessions, and snapshots of their folds.

-- Projection `agent-sessions`: one row a session; those with open turns are what a sweep looks for.
create table agent_sessions (
  workspace text collate "C" not null,
  session_id uuid not null,
  session_key text collate "C" not null,
  agent_id text collate "C" not null,
  started_at timestamptz(3) not null,
  turns bigint not null,
  open_turns integer not null,
  last_position bigint not null,
  constraint agent_sessions_pkey primary key (workspace, session_id)
) with (fillfactor = 70);
create index agent_sessions_open_idx on agent_sessions (workspace, session_id) where open_turns > 0;

-- Operational state, a cache of the log: any row may be deleted at any time.
create table agent_session_snapshots (
  workspace text collate "C" not null,
  session_id uuid not null,
  signature text collate "C" not null,
  version bigint not null,
  fold jsonb not null,
  taken_at timestamptz(3) not null,
  constraint agent_session_snapshots_pkey primary key (workspace, session_id)
);

grant select, insert, update, delete on agent_sessions, agent_session_snapshots to antiphon_agent;
grant select on agent_sessions to antiphon_reader;
