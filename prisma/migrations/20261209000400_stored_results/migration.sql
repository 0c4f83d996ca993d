-- The sweep of file_blobs asks whether the result of a tool call cites a digest.
create index events_stored_result_idx on events (workspace, (data #>> '{stored,digest}'))
  where type = 'ToolCallCompleted' and data ? 'stored';
