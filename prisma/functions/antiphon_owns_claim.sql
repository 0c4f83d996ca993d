-- True when the role owns the scope of a claim, `<caller>/<method>`. Only the service that handles the method may claim under it
-- and read its answer.
create or replace function antiphon_owns_claim(p_scope text) returns boolean
language plpgsql stable set search_path = public, pg_temp as $$
declare
  noun constant text := split_part(substring(p_scope from '[^/]*$'), '.', 1);
begin
  return antiphon_owns(case noun when 'turn' then 'session' when 'credential' then 'key' else noun end);
end $$;
