-- Ends the sessions of frozen senders, unless they have had a new statement since they were seen.
SELECT activity.application_name AS name, pg_terminate_backend(activity.pid)
FROM unnest(%(pid)s::int[], %(state_change)s::timestamptz[]) AS frozen (pid, state_change)
JOIN pg_stat_activity activity USING (pid, state_change)
WHERE activity.wait_event_type = 'Client'
