-- Updates the state of lanes: blocked or suspended (by which delivery, why), or IDLE (flowing).
-- Empties runs that are over. Writes the journal when a lane stops and when it resumes.
WITH changes AS (
    SELECT *
    FROM json_to_recordset(%(rows)s::json) AS change (
        lane_id bigint, state text, reason text, delivery_id bigint, failures int,
        wait_seconds float8, ends_run bool, stays bool
    )
), before AS (
    SELECT lane.id, lane.state FROM delivery_lane lane JOIN changes ON changes.lane_id = lane.id
), changed AS (
    UPDATE delivery_lane lane
    SET state = change.state,
        since = CASE WHEN lane.state = change.state THEN lane.since ELSE now() END,
        reason = CASE WHEN change.state IN ('BLOCKED', 'SUSPENDED') THEN change.reason ELSE '' END,
        delivery_id = change.delivery_id,
        failures = change.failures,
        next_try_at = now() + make_interval(secs => change.wait_seconds),
        run_ids = CASE WHEN change.ends_run THEN '{}' ELSE lane.run_ids END,
        run_attempts = CASE WHEN change.ends_run THEN '{}' ELSE lane.run_attempts END
    FROM changes change
    WHERE lane.id = change.lane_id AND (NOT change.stays OR lane.state = change.state)
    RETURNING lane.id
)
INSERT INTO delivery_journalentry (kind, text, actor, lane_id, delivery_id)
SELECT
    CASE WHEN changes.state IN ('BLOCKED', 'SUSPENDED') THEN changes.state ELSE 'RESUMED' END,
    CASE changes.state
        WHEN 'BLOCKED' THEN 'Blocked: ' || changes.reason
        WHEN 'SUSPENDED' THEN 'Suspended: ' || changes.reason
        ELSE concat_ws(' ', 'Resumed.', nullif(changes.reason, ''))
    END,
    '', changes.lane_id, changes.delivery_id
FROM changes
JOIN before ON before.id = changes.lane_id
JOIN changed ON changed.id = changes.lane_id
WHERE changes.state <> before.state
    AND (changes.state IN ('BLOCKED', 'SUSPENDED') OR before.state IN ('BLOCKED', 'SUSPENDED'))
