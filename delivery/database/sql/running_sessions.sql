-- How many sessions of each part of Inturn work: of all machines, or of the calling machine. Each
-- part names the connections, and uses them every few seconds: a connection idle for longer than
-- `at_work` belongs to a frozen process. The state of another role's session cannot be seen.
SELECT wanted.part, count(activity.pid) AS running
FROM unnest(%(part)s::text[], %(name)s::text[]) AS wanted (part, name)
LEFT JOIN pg_stat_activity activity
    ON activity.datname = current_database()
    AND activity.application_name ~ wanted.name
    AND (
        activity.state IS DISTINCT FROM 'idle'
        OR activity.state_change > clock_timestamp() - %(at_work)s::interval
    )
    AND (NOT %(is_own)s::boolean OR activity.client_addr IS NOT DISTINCT FROM inet_client_addr())
GROUP BY wanted.part
