-- Returns the scopes of a call with the limits in force, narrowest first, as `scopesAt` of metering does. A limit that was set
-- at run time replaces the configured one. An agent has a scope only if it has a limit.
-- It is SQL without settings of its own, so that it becomes part of the statement that reads it.
create or replace function antiphon_scopes_of_call(
  p_workspace text, p_session_id text, p_agents jsonb, p_rules budget_rules, p_at timestamptz
) returns table (kind text, key text, limit_tokens bigint, limit_micro_usd bigint)
language sql stable
as $$
  select s.kind, s.key, case when l.is_set then l.limit_tokens else s.limit_tokens end,
    case when l.is_set then l.limit_micro_usd else s.limit_micro_usd end
  from (
    select 1::bigint as place, 'session' as kind, 'session/' || p_session_id as key, 'session' as name,
      p_rules.session_tokens as limit_tokens, p_rules.session_micro_usd as limit_micro_usd
    union all
    select 1 + a.place, 'agent', 'agent/' || a.id, 'agent/' || a.id, null, null
      from jsonb_array_elements_text(p_agents) with ordinality a (id, place)
    union all
    select 1000, 'day', 'day/' || to_char(p_at at time zone 'UTC', 'YYYY-MM-DD'), 'day',
      p_rules.day_tokens, p_rules.day_micro_usd
    union all
    select 1001, 'month', 'month/' || to_char(p_at at time zone 'UTC', 'YYYY-MM'), 'month',
      p_rules.month_tokens, p_rules.month_micro_usd) s
  left join lateral (
    select l.is_set, l.limit_tokens, l.limit_micro_usd from budget_limits l
    where l.workspace = p_workspace and l.scope_key = s.name offset 0) l on true
  where s.kind <> 'agent' or l.limit_tokens is not null or l.limit_micro_usd is not null
  order by s.place
$$;
