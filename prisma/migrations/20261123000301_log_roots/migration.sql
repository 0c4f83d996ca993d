-- Signed roots of the log, as in `log-roots.jsonl`: the process that signs next continues their chain, and events are
-- archived only up to the newest. They are signed, so a changed row is detected; copies elsewhere show removed ones.
create table log_roots (
  number bigint not null,
  kind text collate "C" not null,
  position bigint not null,
  hash bytea not null,
  root jsonb not null,
  signed_at timestamptz(3) not null,
  constraint log_roots_pkey primary key (number)
);

grant select, insert, delete on log_roots to antiphon_memory;
grant select on log_roots to antiphon_agent, antiphon_reader;
