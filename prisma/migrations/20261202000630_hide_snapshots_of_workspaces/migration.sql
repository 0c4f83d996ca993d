-- A snapshot of one workspace is seen by that workspace only. One of all workspaces is a position without content.
drop policy any_snapshot on projection_snapshots;
create policy shared_or_own on projection_snapshots for select
  using (workspace in ('*', current_setting('antiphon.workspace', true)));
create policy all_workspaces on projection_snapshots for select
  to antiphon_agent, antiphon_metering, antiphon_memory, antiphon_reader, antiphon_archiver
  using (current_setting('antiphon.workspace', true) = '*');
