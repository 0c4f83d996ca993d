-- The sandbox service records which tools of programs, MCP servers and plug-ins exist. Its role appends facts of the
-- category `plugin`, which it owns, and reads these alone: of one workspace at a time, as the gateway does. Cells have no
-- connection to the database (docs/adr/0200-let-the-sandbox-service-record-tools.md).
grant execute on function antiphon_append, antiphon_append_event to antiphon_sandbox;
grant select on events, stream_heads, archived_streams to antiphon_sandbox;

create policy plugin_facts on events as restrictive for select to antiphon_sandbox using (category = 'plugin');
create policy plugin_facts on stream_heads as restrictive for select to antiphon_sandbox
  using (starts_with(stream_id, 'plugin-'));
create policy plugin_facts on archived_streams as restrictive for select to antiphon_sandbox
  using (starts_with(stream_id, 'plugin-'));
