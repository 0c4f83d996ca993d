-- The audit compares the snapshots of sessions with the log.
grant select on agent_session_snapshots to antiphon_reader;
