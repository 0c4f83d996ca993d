-- Files, chats and plans are facts of the agent service. The bytes of files are rows under their digest, outside the log.

insert into category_owners (category, service) values ('file', 'agent'), ('chat', 'agent'), ('plan', 'agent')
  on conflict do nothing;

-- Immutable: a row is written before the fact that cites it, and deleted only while no fact does.
create table file_blobs (
  workspace text collate "C" not null,
  -- SHA-256 of the bytes, hex.
  digest text collate "C" not null,
  size bigint not null,
  -- Compressed by PostgreSQL where that makes it smaller.
  body bytea not null,
  -- Time of the newest write: a repeated write protects the row from the sweep for a day.
  written_at timestamptz(3) not null,
  -- True once the sweep has found a fact that cites the digest.
  is_cited boolean not null default false,
  constraint file_blobs_pkey primary key (workspace, digest)
);
create index file_blobs_sweep_idx on file_blobs (written_at) where not is_cited;
-- The sweep asks whether a fact cites a digest.
create index events_file_digest_idx on events (workspace, (data ->> 'digest')) where category in ('file', 'chat');

-- Fold of a tree at a version, so that a process without it reads few events. Any row may be deleted at any time.
create table file_tree_snapshots (
  workspace text collate "C" not null,
  tree_id uuid not null,
  version bigint not null,
  state jsonb not null,
  -- Form of the state; another one is not read.
  form integer not null,
  -- Hash of the event at the version: a snapshot of another history is not read.
  head_hash bytea not null,
  constraint file_tree_snapshots_pkey primary key (workspace, tree_id)
);

do $$
declare
  name text;
begin
  foreach name in array array['file_blobs', 'file_tree_snapshots'] loop
    execute format('alter table %I enable row level security', name);
    execute format($policy$create policy own_workspace on %I
      using (workspace = current_setting('antiphon.workspace', true))$policy$, name);
    execute format($policy$create policy all_workspaces on %I
      to antiphon_agent, antiphon_metering, antiphon_memory, antiphon_reader, antiphon_archiver
      using (current_setting('antiphon.workspace', true) = '*')$policy$, name);
  end loop;
end $$;

grant select, insert, update, delete on file_blobs, file_tree_snapshots to antiphon_agent;
grant select, insert, update on file_blobs to antiphon_gateway;
grant select on file_blobs, file_tree_snapshots to antiphon_reader;
