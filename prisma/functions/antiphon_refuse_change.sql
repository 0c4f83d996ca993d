-- Refuses every change, so that a table is insert-only for its owner too. A superuser who switches triggers off can still
-- change rows, and the hash chain shows it.
create or replace function antiphon_refuse_change() returns trigger language plpgsql as $$
begin
  raise exception 'the log is append-only: % on % is refused', tg_op, tg_table_name using errcode = 'insufficient_privilege';
end $$;
