-- Projection `budget-usage`: sums of reservations, so that a read of usage does not add up all of them.
create table budget_usage (
  workspace text collate "C" not null,
  -- SHA-256 of the five names, which may be longer than an index takes.
  key bytea not null,
  agent_id text collate "C" not null,
  root_id text collate "C" not null,
  model text collate "C" not null,
  caller text collate "C" not null,
  day text collate "C" not null,
  calls bigint not null,
  charged_tokens bigint not null,
  charged_micro_usd bigint not null,
  reserved_tokens bigint not null,
  reserved_micro_usd bigint not null,
  constraint budget_usage_pkey primary key (workspace, key)
) with (fillfactor = 50);

alter table budget_usage enable row level security;
create policy own_workspace on budget_usage using (workspace = current_setting('antiphon.workspace', true));
create policy all_workspaces on budget_usage
  to antiphon_agent, antiphon_metering, antiphon_memory, antiphon_reader, antiphon_archiver
  using (current_setting('antiphon.workspace', true) = '*');

grant select, insert, update, delete on budget_usage to antiphon_metering;
grant select on budget_usage to antiphon_reader;

-- The sums of the reservations that exist. The projection goes on from the head. An empty log has no checkpoint yet.
insert into budget_usage
  select workspace, sha256(convert_to(jsonb_build_array(workspace, agent_id, root_id, model, caller, day)::text, 'UTF8')),
    agent_id, root_id, model, caller, day, count(*), sum(charged_tokens), sum(charged_micro_usd),
    sum(open_tokens), sum(open_micro_usd)
  from (select workspace, reserved ->> 'agentId' as agent_id,
      coalesce(reserved -> 'agents' ->> -1, reserved ->> 'agentId') as root_id,
      (reserved ->> 'provider') || '/' || (reserved ->> 'model') as model,
      coalesce(reserved ->> 'caller', 'unknown') as caller, left(reserved ->> 'reservedAt', 10) as day,
      charged_tokens, charged_micro_usd,
      case when open_until is not null then (reserved ->> 'tokens')::bigint else 0 end as open_tokens,
      case when open_until is not null then (reserved ->> 'microUsd')::bigint else 0 end as open_micro_usd
    from budget_reservations) r
  group by workspace, agent_id, root_id, model, caller, day;
insert into projection_checkpoints (name, position, epoch, updated_at)
  select 'budget-usage', antiphon_head_position(), epoch, now() from log_head
  where id = 1 and exists (select from budget_reservations);
