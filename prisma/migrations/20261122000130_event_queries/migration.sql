-- What /api/v1/events is asked. Events of the frequent types are found quickly by walking the log in its order, so only
-- the rare ones are indexed by type: a failure among ten million events is one look-up, and a turn pays for none of it.
create index events_rare_type_idx on events (workspace, type, position)
  where type <> all (array['TurnRequested', 'ModelCallStarted', 'ModelCallCompleted', 'ToolCallRequested', 'ToolCallClaimed',
    'ToolCallCompleted', 'TurnCompleted', 'BudgetReserved', 'BudgetSettled']);

-- Times rise with positions: one small entry for every 128 pages is enough to find a day.
create index events_recorded_at_idx on events using brin (recorded_at);
