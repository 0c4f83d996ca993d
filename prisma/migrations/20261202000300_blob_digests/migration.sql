-- Bytes of files are found by their digest, and facts cite it. A writer with the rights of a service could store other bytes
-- under a digest, which only an audit found. A trigger holds for every writer: the function of appends, the gateway's inserts
-- and a restore.
create function antiphon_check_digest() returns trigger
language plpgsql
as $$
begin
  if new.erased_at is null
    and (new.digest <> encode(sha256(new.body), 'hex') or new.size <> octet_length(new.body)) then
    raise exception 'the bytes are not those of the digest %', new.digest using errcode = 'check_violation';
  end if;
  return new;
end $$;

create trigger file_blobs_check_digest before insert or update of body, digest, size on file_blobs
  for each row execute function antiphon_check_digest();
