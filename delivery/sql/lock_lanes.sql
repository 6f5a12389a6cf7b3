-- Takes the advisory locks of those lanes that nobody else serves, and returns their rows.
-- A lock is of the session: it is held until it is given back or the connection dies.
WITH locked AS MATERIALIZED (
    SELECT lane_id
    FROM unnest(%(lane)s::bigint[]) AS wanted (lane_id)
    WHERE pg_try_advisory_lock((%(lock_class)s::bigint << 32) | lane_id)
)
SELECT
    lane.id, lane.kind, lane.failures, lane.state, lane.run_ids, lane.run_attempts,
    extract(epoch FROM lane.next_try_at - now())::float8 AS wait_seconds,
    subscriber.max_queued_to_send, subscriber.refill_level
FROM locked
JOIN delivery_lane lane ON lane.id = locked.lane_id
LEFT JOIN subscriptions_subscriber subscriber ON subscriber.id = lane.subscriber_id
