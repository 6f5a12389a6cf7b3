-- The rows of lanes that their sender begins to serve, with the window columns of their
-- subscribers.
-- Also their endpoints that are DOWN, longest first. All queue lanes serve the same endpoints.
SELECT
    lane.id, lane.kind, lane.failures, lane.state, lane.reason, lane.run_ids, lane.run_attempts,
    lane.run_is_concurrent, extract(epoch FROM lane.next_try_at - now())::float8 AS wait_seconds,
    lane.delivery_id, (
        SELECT json_agg(
            json_build_object(
                'subscription_id', health.subscription_id, 'delivery_id', health.delivery_id,
                'reason', health.reason, 'failures', health.failures, 'wait_seconds',
                extract(epoch FROM health.next_try_at - now())
            )
            ORDER BY health.since, health.subscription_id
        )
        FROM delivery_endpointhealth health
        WHERE health.lane_id = ANY (
            CASE
                WHEN lane.kind = 'QUEUE'
                    THEN ARRAY(SELECT id FROM delivery_lane WHERE kind = 'QUEUE')
                ELSE ARRAY[lane.id]
            END
        )
    ) AS down,
    CASE WHEN lane.catch_up_to IS NOT NULL THEN lane.catch_up_rate END AS catch_up_rate,
    subscriber.processing, subscriber.max_in_flight, subscriber.max_queued_to_send,
    subscriber.refill_level, subscriber.by_priority
FROM delivery_lane lane
LEFT JOIN subscriptions_subscriber subscriber ON subscriber.id = lane.subscriber_id
WHERE lane.id = ANY (%(lane)s::bigint[])
