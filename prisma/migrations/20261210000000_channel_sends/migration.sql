-- Requests to platforms by their keys, and how they ended. The sandbox claims a key right before it connects. Another process learns
-- from the row whether a request left, after the process that waited for the answer has ended.
create table channel_sends (
  workspace text collate "C" not null,
  send_key text collate "C" not null,
  claimed_at timestamptz(3) not null default now(),
  -- Null while the request is open, and for good if the process ended before its answer.
  outcome jsonb,
  constraint channel_sends_pkey primary key (workspace, send_key)
);
create index channel_sends_age_idx on channel_sends (workspace, claimed_at);

grant select, insert, update, delete on channel_sends to antiphon_sandbox;

alter table channel_sends enable row level security;
create policy channel_sends_of_sandbox on channel_sends to antiphon_sandbox
  using (current_setting('antiphon.workspace', true) = workspace)
  with check (current_setting('antiphon.workspace', true) = workspace);
