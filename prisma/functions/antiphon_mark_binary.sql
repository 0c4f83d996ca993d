-- Marks stored bytes as binary when a zero is within the first 8,000 bytes. Searches leave binary files out. The mark is
-- computed once, because the look took half of a search. A trigger holds for every writer, also for a restore of an old backup.
create or replace function antiphon_mark_binary() returns trigger
language plpgsql
as $$
begin
  new.is_binary := position('\x00'::bytea in substring(new.body for 8000)) > 0;
  return new;
end $$;
