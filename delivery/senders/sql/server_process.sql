-- Returns when the server started, and its process for this connection.
SELECT pg_postmaster_start_time() AS server_started_at, pid, backend_start
FROM pg_stat_activity
WHERE pid = pg_backend_pid()
