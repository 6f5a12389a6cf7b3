-- Names this connection, and returns the running senders of the whole installation.
-- The name of a sender's connection has its process id, its slot, its load in percent, and how many
-- senders are to share the work as far as it knows. `is_waiting`: its server process waits for the
-- client since `state_change`, its last change of state; see `delivery.senders.shards.silence`.
WITH named AS MATERIALIZED (
    SELECT set_config('application_name', %(name)s, false)
)
SELECT
    split_part(activity.application_name, ' ', 4)::int AS slot,
    split_part(activity.application_name, ' ', 5)::int AS busy_percent,
    split_part(activity.application_name, ' ', 6)::int AS sharing,
    activity.pid, activity.state_change,
    coalesce(activity.wait_event_type = 'Client', false) AS is_waiting
FROM named
JOIN pg_stat_activity activity
    ON activity.datname = current_database()
    AND activity.application_name ~ '^inturn sender \d+ \d+ \d+ \d+$'
