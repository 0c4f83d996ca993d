-- Stores the bytes of files in the transaction that appends the facts that cite them. The bodies are one after another in
-- p_bodies. A repeated write changes only the time that protects a row from the sweep; erased bytes stay erased.
create or replace function antiphon_put_blobs(p_workspace text[], p_digest text[], p_size integer[], p_bodies bytea) returns integer
language plpgsql security definer
set search_path = public, pg_temp
as $$
begin
  -- In one order, so that two batches with the same bytes do not wait for each other.
  insert into file_blobs (workspace, digest, size, body, written_at)
    select b.workspace, b.digest, b.size, substring(p_bodies from b.from_byte for b.size), clock_timestamp()
    from (
      select workspace, digest, size, (1 + sum(size) over (order by n) - size)::integer as from_byte
      from unnest(p_workspace, p_digest, p_size) with ordinality as given (workspace, digest, size, n)
    ) b
    order by b.workspace, b.digest
    on conflict (workspace, digest) do update set written_at = excluded.written_at;
  return cardinality(p_digest);
end $$;
