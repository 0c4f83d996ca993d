-- A read of budgets as of a position checks whether events before it are archived.
grant select on log_archives to antiphon_metering;
