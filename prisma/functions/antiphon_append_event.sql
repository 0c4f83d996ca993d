-- Appends one event to a stream that exists, without a claim, a guard, bytes or an extension, and perhaps under a fence. This is
-- the most frequent append. Arguments are single values, because an array costs more than the event.
-- Returns the position of the event. Null means that nothing was written: the caller takes antiphon_append, which reports the
-- reason. The rules, the hash and the order of locks (lease, head, log) are those of antiphon_append.
create or replace function antiphon_append_event(
  p_workspace text, p_stream text, p_expected bigint, p_event_id uuid, p_type text, p_schema_version integer, p_data text,
  p_metadata text, p_fence_workspace text, p_fence_lease text, p_fence_epoch bigint
) returns bigint
language plpgsql security definer
set search_path = public, pg_temp
-- A plan that was made while a table was small must not outlive that: always by key.
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
-- Before PostgreSQL 18, a scan that is switched off counts as so dear that its plan would be compiled, for seconds.
set jit = off
as $$
declare
  chain bytea;
  at bigint;
  ignored text;
begin
  if p_expected < 1 or not antiphon_owns(split_part(p_stream, '-', 1))
      or current_setting('transaction_isolation') <> 'read committed'
      or current_setting('antiphon.appended', true) = 'yes' then
    return null;
  end if;

  -- A shared lock keeps the lease from changing hands before this commits.
  if p_fence_lease is not null then
    perform from leases l where l.workspace = p_fence_workspace and l.name = p_fence_lease and l.epoch = p_fence_epoch
      and l.owner is not null for share;
    if not found then
      return null;
    end if;
  end if;

  update stream_heads h
    set version = h.version + 1, hash = sha256(h.hash || convert_to(concat_ws(e'\n', h.stream_id, h.version + 1, p_event_id,
      p_type, p_schema_version, p_data, p_metadata), 'UTF8'))
    where h.workspace = p_workspace and h.stream_id = p_stream and h.version = p_expected
    returning h.hash into chain;
  if not found then
    return null;
  end if;

  -- Last of all locks: held until the commit, so positions are gapless and in the order of commits.
  ignored := pg_advisory_xact_lock(1095652432, 1);
  ignored := set_config('antiphon.appended', 'yes', true);
  insert into events values (
    1 + coalesce((select e.position from events e order by e.position desc limit 1),
      (select h.base_position from log_head h where h.id = 1)),
    p_workspace, split_part(p_stream, '-', 1), p_stream, p_expected + 1, p_event_id, p_type, p_schema_version, p_data::jsonb,
    p_metadata::jsonb, clock_timestamp(), chain)
    returning position into at;
  return at;
end $$;
