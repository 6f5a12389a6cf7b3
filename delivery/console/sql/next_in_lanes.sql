-- The next deliveries of each of these lanes in the order of sending, without skipped and held
-- deliveries, at most `rows` of each lane. Jumps from subscription to subscription on
-- delivery_pending: the cost grows with the number of those with pending deliveries.
WITH RECURSIVE places AS (
    SELECT lane.id AS lane_id, first.subscription_id
    FROM unnest(%(ids)s::bigint[]) AS lane (id)
    CROSS JOIN LATERAL (
        SELECT subscription_id
        FROM delivery_waiting
        WHERE status = 'PENDING' AND lane_id = lane.id AND NOT skipped
        ORDER BY subscription_id
        LIMIT 1
    ) AS first
    UNION ALL
    SELECT places.lane_id, following.subscription_id
    FROM places
    CROSS JOIN LATERAL (
        SELECT subscription_id
        FROM delivery_waiting
        WHERE status = 'PENDING' AND lane_id = places.lane_id AND NOT skipped
            AND subscription_id > places.subscription_id
        ORDER BY subscription_id
        LIMIT 1
    ) AS following
)
SELECT
    next.lane_id, next.id, next.message_id, next.attempts, next.subscription_id,
    subscription.name AS subscription, event_type.name AS event, message.published_at
FROM unnest(%(ids)s::bigint[]) AS lane (id)
CROSS JOIN LATERAL (
    SELECT delivery.*
    FROM places
    JOIN subscriptions_standing standing
        ON standing.id = places.subscription_id AND standing.status = 'ACTIVE'
    CROSS JOIN LATERAL (
        SELECT lane_id, id, message_id, attempts, subscription_id
        FROM delivery_waiting
        WHERE status = 'PENDING' AND lane_id = places.lane_id AND NOT skipped
            AND subscription_id = places.subscription_id
        ORDER BY id
        LIMIT %(rows)s
    ) AS delivery
    WHERE places.lane_id = lane.id
    ORDER BY delivery.id
    LIMIT %(rows)s
) AS next
JOIN subscriptions_subscription subscription ON subscription.id = next.subscription_id
JOIN delivery_message message ON message.id = next.message_id
JOIN subscriptions_eventtype event_type ON event_type.id = message.event_type_id
ORDER BY next.lane_id, next.id
