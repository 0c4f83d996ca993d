-- Erased bytes leave a row without a body, so that neither a read nor a write brings them back.
alter table file_blobs add column erased_at timestamptz(3);
-- The sweep and the audit ask which digests a fact erased.
create index events_erased_digest_idx on events (workspace, (data ->> 'digest')) where type = 'FileBytesErased';
