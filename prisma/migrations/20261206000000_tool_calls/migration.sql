-- Calls of tools by time: the catalogue of tools counts those of a day. The frequent types of events are in no other index.
create index events_tool_calls_idx on events (workspace, recorded_at)
  where type in ('ToolCallRequested', 'ToolCallCompleted', 'ToolCallFailed', 'ToolCallUnknown');
