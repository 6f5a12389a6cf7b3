-- Records which deliveries each lane is about to send, before the first is sent.
UPDATE delivery_lane lane
SET run_ids = run.ids, run_attempts = run.attempts, run_is_concurrent = run.is_concurrent
FROM json_to_recordset(%(rows)s::json) AS run (
    lane_id bigint, ids bigint[], attempts int[], is_concurrent bool
)
WHERE lane.id = run.lane_id
