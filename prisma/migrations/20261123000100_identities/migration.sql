-- Workspaces and API keys: operational state of the gateway, whose facts are in the log (categories `workspace` and `key`).
-- A secret is 32 random bytes, so its plain SHA-256 is enough. No table holds a secret.
create table workspaces (
  workspace text collate "C" not null,
  name text not null,
  status text collate "C" not null,
  created_by text collate "C" not null,
  created_at timestamptz(3) not null,
  constraint workspaces_pkey primary key (workspace)
);
insert into workspaces (workspace, name, status, created_by, created_at)
  values ('default', 'Default', 'active', 'system', now());

-- `status`: pending (its KeyCreated may not be in the log), active, revoking (its KeyRevoked may not be there), revoked.
-- Only an active key authenticates. `next_hash` belongs to a rotation whose KeyRotated may not be in the log.
create table api_keys (
  workspace text collate "C" not null,
  key_id text collate "C" not null,
  name text not null,
  role text collate "C" not null,
  scopes text collate "C",
  agent_id text collate "C",
  status text collate "C" not null,
  version integer not null,
  secret_hash bytea not null,
  previous_hash bytea,
  previous_until timestamptz(3),
  next_hash bytea,
  next_overlap_s integer,
  created_by text collate "C" not null,
  created_at timestamptz(3) not null,
  changed_by text collate "C" not null,
  changed_at timestamptz(3) not null,
  expires_at timestamptz(3),
  constraint api_keys_pkey primary key (workspace, key_id),
  constraint api_keys_status_check check (status in ('pending', 'active', 'revoking', 'revoked'))
);
-- An id names one key in all workspaces: a look-up knows no workspace yet.
create unique index api_keys_key_id_key on api_keys (key_id);
create index api_keys_list_idx on api_keys (workspace, created_at, key_id);

grant select, insert, update, delete on workspaces, api_keys to antiphon_gateway;

-- A statement that forgets its workspace reads nothing. The workspace `default` administers the list of workspaces.
alter table workspaces enable row level security;
create policy workspaces_of_gateway on workspaces to antiphon_gateway
  using (current_setting('antiphon.workspace', true) in (workspace, 'default'))
  with check (current_setting('antiphon.workspace', true) in (workspace, 'default'));
alter table api_keys enable row level security;
create policy api_keys_of_gateway on api_keys to antiphon_gateway
  using (workspace = current_setting('antiphon.workspace', true))
  with check (workspace = current_setting('antiphon.workspace', true));

-- Authentication finds keys before it knows their workspace: by id only, and only the columns that it compares.
create function antiphon_find_keys(p_key_ids text[])
returns table (
  workspace text, key_id text, name text, role text, scopes text, agent_id text, status text, version integer,
  secret_hash bytea, previous_hash bytea, previous_until timestamptz, expires_at timestamptz
)
language sql stable security definer
set search_path = public, pg_temp
as $$
  select k.workspace, k.key_id, k.name, k.role, k.scopes, k.agent_id, k.status, k.version,
    k.secret_hash, k.previous_hash, k.previous_until, k.expires_at
  from api_keys k where k.key_id = any (p_key_ids)
$$;
revoke all on function antiphon_find_keys from public;
grant execute on function antiphon_find_keys to antiphon_gateway;
