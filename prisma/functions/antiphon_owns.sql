-- True when the role that the session has taken (not the owner of a function on the way) owns the category.
create or replace function antiphon_owns(p_category text) returns boolean
language plpgsql stable set search_path = public, pg_temp as $$
begin
  return exists (
    select from category_owners o
    where o.category = p_category
      and pg_has_role(coalesce(nullif(current_setting('role'), 'none'), session_user), 'antiphon_' || o.service, 'member'));
end $$;
