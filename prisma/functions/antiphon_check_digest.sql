-- Refuses bytes that do not match their digest and size. Bytes of files are found by their digest, and facts cite it. A trigger
-- holds for every writer: the function of appends, the inserts of the gateway and a restore.
create or replace function antiphon_check_digest() returns trigger
language plpgsql
as $$
begin
  if new.erased_at is null
    and (new.digest <> encode(sha256(new.body), 'hex') or new.size <> octet_length(new.body)) then
    raise exception 'the bytes are not those of the digest %', new.digest using errcode = 'check_violation';
  end if;
  return new;
end $$;
