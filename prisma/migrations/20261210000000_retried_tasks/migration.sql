-- The task that a task tries again. A failed task with a retry waits for no person.
alter table agent_tasks add column retry_of text collate "C";
create index agent_tasks_retry_idx on agent_tasks (retry_of, workspace);
