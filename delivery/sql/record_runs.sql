-- Records which deliveries each lane is about to send, before the first is sent.
-- A blocked lane stays BLOCKED while it tries again.
UPDATE delivery_lane lane
SET run_ids = run.ids,
    run_attempts = run.attempts,
    run_is_concurrent = run.is_concurrent,
    state = CASE WHEN lane.state = 'IDLE' THEN 'SENDING' ELSE lane.state END,
    since = CASE WHEN lane.state = 'IDLE' THEN now() ELSE lane.since END
FROM json_to_recordset(%(rows)s::json) AS run (
    lane_id bigint, ids bigint[], attempts int[], is_concurrent bool
)
WHERE lane.id = run.lane_id
