-- Until when everything is committed that was written before; and who ends it early, by writing for more than a minute.
-- A row has the time of the moment it is written, and its transaction is known to write (backend_xid) a moment later: `lag` covers
-- that. Whoever still writes holds the end back to its own beginning.
SELECT
    least(clock_timestamp() - %(lag)s::interval, min(xact_start)) AS until,
    (array_agg(pid ORDER BY xact_start) FILTER (WHERE xact_start < clock_timestamp() - interval '1 minute'))[1] AS waits_for
FROM pg_stat_activity
WHERE datname = current_database() AND backend_xid IS NOT NULL AND pid <> pg_backend_pid()
