-- Keys of model providers, encrypted by the agent service. `data_key` is the key of the ciphertext, wrapped by the master key
-- that `master_key_id` names. Both are bound to workspace, provider and credential_id, so neither can be moved to another row.
create table provider_credentials (
  workspace text collate "C" not null,
  provider text collate "C" not null,
  credential_id uuid not null,
  ciphertext bytea not null,
  data_key bytea not null,
  master_key_id text collate "C" not null,
  created_by text collate "C" not null,
  created_at timestamptz(3) not null,
  constraint provider_credentials_pkey primary key (workspace, provider)
);
create index provider_credentials_master_key_idx on provider_credentials (master_key_id);

grant select, insert, update, delete on provider_credentials to antiphon_agent;

-- `*`: a new master key wraps the data keys of all workspaces.
alter table provider_credentials enable row level security;
create policy provider_credentials_of_agent on provider_credentials to antiphon_agent
  using (current_setting('antiphon.workspace', true) in (workspace, '*'))
  with check (current_setting('antiphon.workspace', true) in (workspace, '*'));
