-- Modules of plug-ins that workspaces add at run time, and values of the stores of plug-ins. The facts about the plug-ins have the
-- digests of the modules. Both tables belong to the sandbox service, which sees one workspace at a time.
create table plugin_modules (
  workspace text collate "C" not null,
  digest text collate "C" not null,
  bytes bytea not null,
  constraint plugin_modules_pkey primary key (workspace, digest)
);
create table plugin_values (
  workspace text collate "C" not null,
  plugin text collate "C" not null,
  store text collate "C" not null,
  key text collate "C" not null,
  value bytea not null,
  constraint plugin_values_pkey primary key (workspace, plugin, store, key)
);
-- A module is compressed already, or hardly compressible.
alter table plugin_modules alter column bytes set storage external;

grant select, insert, delete on plugin_modules to antiphon_sandbox;
grant select, insert, update, delete on plugin_values to antiphon_sandbox;

alter table plugin_modules enable row level security;
alter table plugin_values enable row level security;
create policy plugin_modules_of_sandbox on plugin_modules to antiphon_sandbox
  using (current_setting('antiphon.workspace', true) = workspace)
  with check (current_setting('antiphon.workspace', true) = workspace);
create policy plugin_values_of_sandbox on plugin_values to antiphon_sandbox
  using (current_setting('antiphon.workspace', true) = workspace)
  with check (current_setting('antiphon.workspace', true) = workspace);
