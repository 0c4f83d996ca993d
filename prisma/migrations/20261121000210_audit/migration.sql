-- The audit reads with the reader's role; claims hold keys, digests and answers (ids), no content.
grant select on idempotency to antiphon_reader;
