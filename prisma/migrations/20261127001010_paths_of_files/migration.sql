-- An erasure asks which digests a path has had. Digests of the paths keep long ones below the limit of an index row.
create index events_file_path_idx on events (workspace, md5(data ->> 'path')) where category in ('file', 'chat') and data ->> 'path' is not null;
create index events_file_moved_idx on events (workspace, md5(data ->> 'to')) where type = 'FileMoved';
-- Lists of forked trees leave out files whose bytes were erased.
create index file_blobs_erased_idx on file_blobs (workspace, digest) where erased_at is not null;
