-- A rebuild or a comparison folds the log as antiphon_reader into temporary tables that stand before the real ones. These
-- functions run with the rights of whoever calls them: on temporary tables they work, on the real ones they are refused.
grant execute on function budget_lock, budget_write to antiphon_reader;
