-- Authentication finds keys before it knows their workspace: by id only, and only the columns that it compares.
create or replace function antiphon_find_keys(p_key_ids text[])
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
