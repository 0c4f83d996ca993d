-- A search leaves binary files out: a zero is within their first 8,000 bytes. Looking for it took half of a search, so it is
-- looked for once, when the bytes are stored. A trigger holds for every writer, also for a restore of an older backup.
alter table file_blobs add column is_binary boolean not null default false;
update file_blobs set is_binary = true where position('\x00'::bytea in substring(body for 8000)) > 0;

create function antiphon_mark_binary() returns trigger
language plpgsql
as $$
begin
  new.is_binary := position('\x00'::bytea in substring(new.body for 8000)) > 0;
  return new;
end $$;

create trigger file_blobs_mark_binary before insert or update of body on file_blobs
  for each row execute function antiphon_mark_binary();
