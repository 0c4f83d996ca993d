-- The memory service lists archives, and files whose events still wait to leave the log.
grant select on log_archives, archive_requests to antiphon_memory;
