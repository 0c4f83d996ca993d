-- Bytes that no fact cites have a quota in each workspace. Its check reads those of one workspace.
create index file_blobs_uncited_idx on file_blobs (workspace) include (size) where not is_cited;
