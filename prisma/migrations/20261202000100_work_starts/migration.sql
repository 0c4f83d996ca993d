-- Starts of work that a process took up after another one, and that no process has finished since. Work whose process dies
-- again and again is given up after some starts (docs/adr/0171). A row is deleted when its work makes progress.
create table work_starts (
  -- Role of the service: it sees its own rows only.
  owner text not null default current_user,
  -- Kind of work, such as `projection` or `plan-run`.
  kind text not null,
  item text not null,
  starts integer not null,
  started_at timestamptz(3) not null,
  constraint work_starts_pkey primary key (owner, kind, item)
);
alter table work_starts enable row level security;
create policy own_rows on work_starts using (owner = current_user) with check (owner = current_user);
grant select, insert, update, delete on work_starts to antiphon_agent, antiphon_metering, antiphon_memory;
