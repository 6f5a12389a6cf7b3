-- The number of waiting deliveries of ACTIVE subscriptions in each of these lanes, whether or not
-- their subscriber is held, counted up to a limit on delivery_pending. Jumps from subscription to
-- subscription there: the cost grows with the number of those that have pending deliveries.
WITH RECURSIVE places AS (
    SELECT lane.id AS lane_id, first.skipped, first.subscription_id
    FROM unnest(%(ids)s::bigint[]) AS lane (id)
    CROSS JOIN LATERAL (
        SELECT skipped, subscription_id
        FROM delivery_waiting
        WHERE status = 'PENDING' AND lane_id = lane.id
        ORDER BY skipped, subscription_id
        LIMIT 1
    ) AS first
    UNION ALL
    SELECT places.lane_id, following.skipped, following.subscription_id
    FROM places
    CROSS JOIN LATERAL (
        SELECT skipped, subscription_id
        FROM delivery_waiting
        WHERE status = 'PENDING' AND lane_id = places.lane_id
            AND (skipped, subscription_id) > (places.skipped, places.subscription_id)
        ORDER BY skipped, subscription_id
        LIMIT 1
    ) AS following
)
SELECT
    lane.id,
    (
        SELECT count(*) FROM (
            SELECT
            FROM places
            JOIN subscriptions_subscription subscription ON subscription.id = places.subscription_id
            JOIN delivery_waiting delivery
                ON delivery.lane_id = places.lane_id AND delivery.skipped = places.skipped
                AND delivery.subscription_id = places.subscription_id
                AND delivery.status = 'PENDING'
            WHERE places.lane_id = lane.id AND subscription.status = 'ACTIVE'
            LIMIT %(limit)s + 1
        ) AS counted
    ) AS waiting
FROM unnest(%(ids)s::bigint[]) AS lane (id)
