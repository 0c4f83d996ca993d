-- Memory's projection of `session-*` events: what the fold of them says at the checkpoint `memory-facts`.

-- A session as memory has seen it. Its key may be 7 kB long, so indexes use the key's SHA-256.
create table memory_sessions (
  workspace text collate "C" not null,
  session_id uuid not null,
  session_key text not null,
  key_hash bytea not null,
  agent_id text collate "C" not null,
  -- The last event of its stream that the rows contain.
  version bigint not null,
  constraint memory_sessions_pkey primary key (workspace, session_id)
) with (fillfactor = 50);

-- Facts belong to a session key, so that they outlive `/new`. A superseded fact stays.
create table memory_facts (
  workspace text collate "C" not null,
  fact_id uuid not null,
  key_hash bytea not null,
  subject text not null,
  predicate text not null,
  object text not null,
  confidence double precision not null,
  learned_at timestamptz(3) not null,
  superseded_at timestamptz(3),
  source_event_id uuid not null,
  -- Where the source event stands in the log, and the fact's place among those of the event: the order of learning.
  position bigint not null,
  ordinal integer not null,
  constraint memory_facts_pkey primary key (workspace, fact_id),
  constraint memory_facts_confidence check (confidence between 0 and 1)
);
-- At most one fact of a subject and predicate is in force.
create unique index memory_facts_active_key on memory_facts (workspace, key_hash, subject, predicate)
  where superseded_at is null;
create index memory_facts_order_idx on memory_facts (workspace, key_hash, position, ordinal);

revoke all on memory_sessions, memory_facts from public;
grant select, insert, update, delete on memory_sessions, memory_facts to antiphon_memory;
grant select on memory_sessions, memory_facts to antiphon_reader;
