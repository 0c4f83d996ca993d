-- The newest facts of a workspace. Without it, the newest entries of an agent are found by a sort of all facts.
create index memory_facts_newest_idx on memory_facts (workspace, position, ordinal);
