-- The agent service owns the facts of channels: deliveries of platforms, replies, and paired peers.
insert into category_owners (category, service) values ('channel', 'agent') on conflict do nothing;

-- Deliveries of channels by their state, for lists of dead letters and for the work that an ended process left.
create table agent_channel_deliveries (
  workspace text collate "C" not null,
  message_id uuid not null,
  channel text collate "C" not null,
  peer text collate "C",
  state text collate "C" not null,
  code text collate "C",
  attempts integer not null default 0,
  parts integer not null default 0,
  received_at timestamptz(3) not null,
  changed_at timestamptz(3) not null,
  first_position bigint not null,
  constraint agent_channel_deliveries_pkey primary key (workspace, message_id)
);
create index agent_channel_deliveries_list_idx on agent_channel_deliveries (workspace, first_position desc);
create index agent_channel_deliveries_open_idx on agent_channel_deliveries (first_position)
  where state in ('received', 'answering', 'queued', 'sending');

grant select, insert, update, delete on agent_channel_deliveries to antiphon_agent;
grant select on agent_channel_deliveries to antiphon_reader;

alter table agent_channel_deliveries enable row level security;
create policy own_workspace on agent_channel_deliveries
  using (workspace = current_setting('antiphon.workspace', true));
create policy all_workspaces on agent_channel_deliveries
  to antiphon_agent, antiphon_metering, antiphon_memory, antiphon_reader, antiphon_archiver
  using (current_setting('antiphon.workspace', true) = '*');
