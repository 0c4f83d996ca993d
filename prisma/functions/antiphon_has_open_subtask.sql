-- True when a task below the task of this stream is open. Its events stay in the log until then: its budget limits the tasks
-- below.
create or replace function antiphon_has_open_subtask(p_workspace text, p_stream text) returns boolean
language sql stable security definer set search_path = public, pg_temp as $$
  with recursive below as (
    select t.id, t.ended_at from agent_tasks t
    where t.workspace = p_workspace and t.parent_task_id = substr(p_stream, length('task-') + 1)::uuid
    union
    select t.id, t.ended_at from below b
    join agent_tasks t on t.workspace = p_workspace and t.parent_task_id = b.id::uuid
  )
  select exists (select from below where ended_at is null)
$$;
