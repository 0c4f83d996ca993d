-- The sweep of file_blobs asks whether an attachment of a session cites a digest.
create index events_attached_digest_idx on events (workspace, (data ->> 'digest')) where type = 'ChatFileAttached';
