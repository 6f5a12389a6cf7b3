-- Takes the advisory locks of those lanes that nobody else serves, and returns their rows.
-- A lock is of the session: it is held until it is given back or the connection dies.
WITH locked AS MATERIALIZED (
    SELECT lane_id
    FROM unnest(%(lane)s::bigint[]) AS wanted (lane_id)
    WHERE pg_try_advisory_lock((%(lock_class)s::bigint << 32) | lane_id)
)
SELECT
    lane.id, lane.kind, lane.failures, lane.state, lane.reason, lane.run_ids, lane.run_attempts, lane.run_is_concurrent,
    extract(epoch FROM lane.next_try_at - now())::float8 AS wait_seconds,
    lane.delivery_id, head.subscription_id AS head_subscription_id,
    subscriber.processing, subscriber.max_in_flight, subscriber.max_queued_to_send, subscriber.refill_level
FROM locked
JOIN delivery_lane lane ON lane.id = locked.lane_id
LEFT JOIN subscriptions_subscriber subscriber ON subscriber.id = lane.subscriber_id
LEFT JOIN delivery_delivery head ON head.id = lane.delivery_id
