-- The lanes of these shards that have a PENDING delivery of a subscription that may be sent to.
-- In the retry lane, and for skipped deliveries of a CONCURRENT subscriber, the delivery must be
-- due. A BLOCKED lane has work as well, if only to find that nothing stops it any more. An endpoint
-- that is DOWN is no work. Skips from one (lane, skipped, subscription) to the next on the index
-- delivery_pending, so that the cost grows with the number of those and not with the backlog.
-- BLOCKED lanes are found on lane_stopped.
WITH RECURSIVE found AS (
    (
        SELECT lane_id, skipped, subscription_id
        FROM delivery_waiting
        WHERE status = 'PENDING' AND lane_id IS NOT NULL
        ORDER BY lane_id, skipped, subscription_id
        LIMIT 1
    )
    UNION ALL
    SELECT following.*
    FROM found
    CROSS JOIN LATERAL (
        SELECT lane_id, skipped, subscription_id
        FROM delivery_waiting
        WHERE status = 'PENDING' AND lane_id IS NOT NULL
            AND (lane_id, skipped, subscription_id) > (
                found.lane_id, found.skipped, found.subscription_id
            )
        ORDER BY lane_id, skipped, subscription_id
        LIMIT 1
    ) AS following
)
SELECT found.lane_id
FROM found
JOIN delivery_sendable sendable ON sendable.id = found.subscription_id
JOIN delivery_lane lane ON lane.id = found.lane_id
LEFT JOIN subscriptions_subscriber subscriber ON subscriber.id = lane.subscriber_id
WHERE found.lane_id %% 512 = ANY (%(shard)s::int[]) AND (
    lane.kind <> 'RETRY'
    AND (subscriber.processing IS DISTINCT FROM 'CONCURRENT' OR NOT found.skipped)
    OR EXISTS (
        SELECT
        FROM delivery_waiting delivery
        WHERE delivery.lane_id = found.lane_id AND delivery.subscription_id = found.subscription_id
            AND delivery.status = 'PENDING' AND delivery.next_attempt_at <= now()
        -- Otherwise the planner may make one join of all of them, which reads everything due.
        OFFSET 0
    )
)
UNION
SELECT id FROM delivery_lane WHERE state = 'BLOCKED' AND id %% 512 = ANY (%(shard)s::int[])
