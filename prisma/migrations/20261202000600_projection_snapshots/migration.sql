-- Snapshots of projections at positions of the log, for reads of the past. Decision:
-- docs/adr/0181-keep-snapshots-of-projections-for-reads-of-the-past.md.

create table projection_snapshots (
  projection text collate "C" not null,
  -- `*` for all workspaces.
  workspace text collate "C" not null,
  position bigint not null,
  epoch bigint not null,
  -- Columns of the tables at that time. A snapshot of other columns is not used.
  form text collate "C" not null,
  bytes bigint not null,
  made_at timestamptz(3) not null default clock_timestamp(),
  constraint projection_snapshots_pkey primary key (projection, workspace, position)
);

create table projection_snapshot_rows (
  projection text collate "C" not null,
  -- `scope` is the workspace of the snapshot, `workspace` that of the rows.
  scope text collate "C" not null,
  position bigint not null,
  workspace text collate "C" not null,
  table_name text collate "C" not null,
  part integer not null,
  rows jsonb not null,
  constraint projection_snapshot_rows_pkey primary key (projection, scope, position, workspace, table_name, part)
);

alter table projection_snapshots enable row level security;
-- A snapshot without its rows is a position without content.
create policy any_snapshot on projection_snapshots for select using (true);
alter table projection_snapshot_rows enable row level security;
create policy own_workspace on projection_snapshot_rows for select
  using (workspace = current_setting('antiphon.workspace', true));
create policy all_workspaces on projection_snapshot_rows for select
  to antiphon_agent, antiphon_metering, antiphon_memory, antiphon_reader, antiphon_archiver
  using (current_setting('antiphon.workspace', true) = '*');

-- Written only for the projections of the role: in one workspace, or in all.
do $$
declare
  service text;
  prefix text;
begin
  for service, prefix in select * from (values ('agent', 'agent'), ('metering', 'budget')) v loop
    execute format($policy$create policy own_%s on projection_snapshots to antiphon_%s
      using (split_part(projection, '-', 1) = %L and current_setting('antiphon.workspace', true) in ('*', workspace))$policy$,
      prefix, service, prefix);
    execute format($policy$create policy own_%s on projection_snapshot_rows to antiphon_%s
      using (split_part(projection, '-', 1) = %L
        and (current_setting('antiphon.workspace', true) = '*'
          or (current_setting('antiphon.workspace', true) = scope and workspace = scope)))$policy$,
      prefix, service, prefix);
  end loop;
end $$;

grant select, insert, update, delete on projection_snapshots, projection_snapshot_rows to antiphon_agent, antiphon_metering;
grant select on projection_snapshots, projection_snapshot_rows to antiphon_reader;
