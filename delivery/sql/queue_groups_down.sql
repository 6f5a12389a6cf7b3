-- The groups of QUEUE event types every ACTIVE endpoint of which failed with a message that still waits: one row an endpoint,
-- with the oldest message it failed with, why, and what waits for the group, counted up to a limit.
-- Finds the endpoints by jumping on delivery_pending among what was skipped, which costs nothing while all is well.
WITH RECURSIVE failed AS (
    SELECT lane.id AS lane_id, oldest.subscription_id, oldest.id
    FROM delivery_lane lane
    CROSS JOIN LATERAL (
        SELECT subscription_id, id
        FROM delivery_waiting
        WHERE lane_id = lane.id AND skipped AND status = 'PENDING'
        ORDER BY subscription_id, id
        LIMIT 1
    ) AS oldest
    WHERE lane.kind = 'QUEUE'
    UNION ALL
    SELECT failed.lane_id, following.subscription_id, following.id
    FROM failed
    CROSS JOIN LATERAL (
        SELECT subscription_id, id
        FROM delivery_waiting
        WHERE lane_id = failed.lane_id AND skipped AND status = 'PENDING'
            AND subscription_id > failed.subscription_id
        ORDER BY subscription_id, id
        LIMIT 1
    ) AS following
), endpoints AS (
    SELECT
        subscription.id, subscription.name, subscription.subscriber_id, subscription.event_type_id,
        subscription.header_filter_string, subscription.filter_identity, subscription.endpoint, oldest.delivery_id
    FROM (SELECT subscription_id, min(id) AS delivery_id FROM failed GROUP BY subscription_id) AS oldest
    JOIN subscriptions_subscription subscription ON subscription.id = oldest.subscription_id
    WHERE subscription.status = 'ACTIVE'
), down AS (
    SELECT event_type_id, header_filter_string, filter_identity, min(delivery_id) AS delivery_id
    FROM endpoints
    GROUP BY event_type_id, header_filter_string, filter_identity
    HAVING count(*) = (
        SELECT count(*)
        FROM subscriptions_subscription member
        WHERE member.event_type_id = endpoints.event_type_id
            AND member.header_filter_string = endpoints.header_filter_string
            AND member.filter_identity = endpoints.filter_identity AND member.status = 'ACTIVE'
    )
    ORDER BY min(delivery_id)
    LIMIT %(rows)s
)
SELECT
    event_type.id AS event_type_id, event_type.name AS event, down.header_filter_string, down.filter_identity,
    message.id AS message_id, message.published_at AS oldest_at,
    endpoints.id AS subscription_id, subscriber.name || '/' || endpoints.name AS subscription, endpoints.endpoint,
    delivery.reason, delivery.next_attempt_at,
    -- Every endpoint waits for the same messages: one is counted.
    CASE WHEN endpoints.delivery_id = down.delivery_id THEN (
        SELECT count(*) FROM (
            SELECT
            FROM delivery_lane lane
            JOIN delivery_waiting waiting
                ON waiting.lane_id = lane.id AND waiting.skipped = ANY ('{f,t}'::boolean[])
                AND waiting.subscription_id = endpoints.id AND waiting.status = 'PENDING'
            WHERE lane.kind = 'QUEUE'
            LIMIT %(limit)s + 1
        ) AS counted
    ) ELSE 0 END AS waiting
FROM down
JOIN delivery_waiting oldest ON oldest.id = down.delivery_id
JOIN delivery_message message ON message.id = oldest.message_id
JOIN subscriptions_eventtype event_type ON event_type.id = down.event_type_id
JOIN endpoints
    ON endpoints.event_type_id = down.event_type_id AND endpoints.filter_identity = down.filter_identity
    AND endpoints.header_filter_string = down.header_filter_string
JOIN subscriptions_subscriber subscriber ON subscriber.id = endpoints.subscriber_id
JOIN delivery_waiting delivery ON delivery.id = endpoints.delivery_id
ORDER BY down.delivery_id, endpoints.id
