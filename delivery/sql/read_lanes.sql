-- The rows of lanes that their sender begins to serve, with how their subscribers want them served.
SELECT
    lane.id, lane.kind, lane.failures, lane.state, lane.reason, lane.run_ids, lane.run_attempts, lane.run_is_concurrent,
    extract(epoch FROM lane.next_try_at - now())::float8 AS wait_seconds,
    lane.delivery_id, delivery_subscription_of(lane.delivery_id) AS head_subscription_id,
    subscriber.processing, subscriber.max_in_flight, subscriber.max_queued_to_send, subscriber.refill_level
FROM delivery_lane lane
LEFT JOIN subscriptions_subscriber subscriber ON subscriber.id = lane.subscriber_id
WHERE lane.id = ANY (%(lane)s::bigint[])
