-- Metering's working state: what the fold of all budget events says at the newest one. Decisions: docs/adr/0040.

-- One row for each scope (`session/<id>`, `day/2026-11-21`, `month/2026-11`); its lock orders admissions.
create table budget_balances (
  workspace text collate "C" not null,
  scope_key text collate "C" not null,
  reserved_tokens bigint not null default 0,
  settled_tokens bigint not null default 0,
  reserved_micro_usd bigint not null default 0,
  settled_micro_usd bigint not null default 0,
  frozen_by uuid,
  constraint budget_balances_pkey primary key (workspace, scope_key),
  constraint budget_balances_not_negative check (
    least(reserved_tokens, settled_tokens, reserved_micro_usd, settled_micro_usd) >= 0)
) with (fillfactor = 50);

create table budget_reservations (
  workspace text collate "C" not null,
  reservation_id uuid not null,
  session_id uuid not null,
  attempt integer not null,
  scope_keys text[] not null,
  status text collate "C" not null,
  stream_version bigint not null,
  -- Data of its BudgetReserved event.
  reserved jsonb not null,
  charged_tokens bigint not null,
  charged_micro_usd bigint not null,
  corrected boolean not null,
  -- When it expires; null once it has ended, so that this index finds the open ones alone.
  open_until timestamptz(3),
  constraint budget_reservations_pkey primary key (workspace, reservation_id),
  constraint budget_reservations_status check (status in ('reserved', 'settled', 'released', 'expired_estimated')),
  constraint budget_reservations_open check ((status = 'reserved') = (open_until is not null))
) with (fillfactor = 70);
create index budget_reservations_open_idx on budget_reservations (workspace, open_until);

revoke all on budget_balances, budget_reservations from public;
grant select, insert, update, delete on budget_balances, budget_reservations to antiphon_metering;
grant select on budget_balances, budget_reservations to antiphon_reader;
