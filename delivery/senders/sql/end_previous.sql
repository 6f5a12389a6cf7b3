-- Ends the previous session of this sender, and returns a row as long as its server process exists.
-- A process leaves pg_stat_activity after it has released its locks. A pooler may have given the
-- process to another client: then it has another name, or is our own.
SELECT pg_terminate_backend(pid)
FROM pg_stat_activity
WHERE pid = %(pid)s AND backend_start = %(backend_start)s
    AND starts_with(application_name, %(name)s)
    AND pid <> pg_backend_pid()
