-- Undoes the statement that it stands in, unless the log took every request of its append (then there are no outcomes).
create or replace function budget_appended(p_outcomes text[]) returns boolean language plpgsql immutable as $$
begin
  if p_outcomes is not null then
    raise exception 'the log refused a part of the batch' using errcode = 'serialization_failure';
  end if;
  return true;
end $$;
