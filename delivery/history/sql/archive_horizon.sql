-- Returns the time before which all written rows are committed, and the process which limits it by
-- writing for more than a minute. A row has the time at which it was written, and the transaction
-- becomes visible as a writer (backend_xid) a moment later: `lag` covers the moment. A writing
-- transaction limits the time to the transaction's beginning.
SELECT
    least(clock_timestamp() - %(lag)s::interval, min(xact_start)) AS until,
    (
        array_agg(pid ORDER BY xact_start) FILTER (
            WHERE xact_start < clock_timestamp() - interval '1 minute'
        )
    )[1] AS waits_for
FROM pg_stat_activity
WHERE datname = current_database() AND backend_xid IS NOT NULL AND pid <> pg_backend_pid()
