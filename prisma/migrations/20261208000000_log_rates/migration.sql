-- Projection `memory-log-rates`: counts of each workspace by minute (kept for a day) and by hour (kept for 30 days), and since
-- the beginning of the log. A chart reads some hundred rows, whatever the log holds.
create table log_rates (
  workspace text collate "C" not null,
  -- Seconds: 60, 3600, or 0 for the whole log.
  step integer not null,
  -- Beginning of the step by `recorded_at`; the epoch for the whole log.
  at timestamptz(3) not null,
  events bigint not null,
  turns bigint not null,
  ended_turns bigint not null,
  tasks bigint not null,
  ended_tasks bigint not null,
  failures bigint not null,
  model_calls bigint not null,
  tool_calls bigint not null,
  input_tokens bigint not null,
  output_tokens bigint not null,
  micro_usd bigint not null,
  -- Levels after the last event of the step.
  open_turns bigint not null,
  open_tasks bigint not null,
  constraint log_rates_pkey primary key (workspace, step, at)
) with (fillfactor = 50);
-- Rows are deleted by age, of all workspaces.
create index log_rates_age_idx on log_rates (step, at);

alter table log_rates enable row level security;
create policy own_workspace on log_rates using (workspace = current_setting('antiphon.workspace', true));
create policy all_workspaces on log_rates
  to antiphon_agent, antiphon_metering, antiphon_memory, antiphon_reader, antiphon_archiver
  using (current_setting('antiphon.workspace', true) = '*');

grant select, insert, update, delete on log_rates to antiphon_memory;
grant select on log_rates to antiphon_reader;

-- The projection cannot read a log with archives from its beginning. It goes on from the head there, with the open turns and
-- tasks of the events that are left; a rebuild with the archives adds the history.
insert into log_rates
  select workspace, 0, 'epoch', count(*), count(*) filter (where type = 'TurnRequested'),
    count(*) filter (where type in ('TurnCompleted', 'TurnFailed', 'TurnCancelled')),
    count(*) filter (where type = 'TaskQueued'), count(*) filter (where type = 'TaskEnded'), 0, 0, 0, 0, 0, 0,
    count(*) filter (where type = 'TurnRequested')
      - count(*) filter (where type in ('TurnCompleted', 'TurnFailed', 'TurnCancelled')),
    count(*) filter (where type = 'TaskQueued') - count(*) filter (where type = 'TaskEnded')
  from events where exists (select from log_archives) group by workspace;
insert into projection_checkpoints (name, position, epoch, updated_at)
  select 'memory-log-rates', antiphon_head_position(), epoch, now() from log_head
  where id = 1 and exists (select from log_archives);
