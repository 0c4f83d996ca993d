-- Providers in trouble, as all agent processes see them: operational state, not facts. A provider that answers has no row.
create table provider_breakers (
  workspace text collate "C" not null,
  provider text collate "C" not null,
  failures integer not null,
  failed_at timestamptz(3) not null,
  open_until timestamptz(3),
  probe_id uuid,
  probe_until timestamptz(3),
  constraint provider_breakers_pkey primary key (workspace, provider)
) with (fillfactor = 70);

grant select, insert, update, delete on provider_breakers to antiphon_agent;
grant select on provider_breakers to antiphon_reader;
