-- How often an event was tried before its stream is parked for good. An older version parks at once: five is its count.
alter table projection_parked
  add column tries integer not null default 5,
  -- When it is tried again by itself; null once it waits for a replay.
  add column retry_at timestamptz(3);
