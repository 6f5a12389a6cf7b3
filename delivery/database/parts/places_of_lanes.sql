-- Like `places_of_lane.sql`, with `lane_id`, for the lanes that the query `it` returns.
SELECT lane.id AS lane_id, first.skipped, first.subscription_id
FROM ({it}) AS lane (id)
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
