-- Records which deliveries each lane is about to send, before the first is sent.
-- A blocked lane stays BLOCKED while it tries again.
UPDATE delivery_lane lane
SET run_ids = run.ids::bigint[],
    run_attempts = run.attempts::int[],
    state = CASE WHEN lane.state = 'IDLE' THEN 'SENDING' ELSE lane.state END,
    since = CASE WHEN lane.state = 'IDLE' THEN now() ELSE lane.since END
FROM unnest(%(lane)s::bigint[], %(ids)s::text[], %(attempts)s::text[]) AS run (lane_id, ids, attempts)
WHERE lane.id = run.lane_id
