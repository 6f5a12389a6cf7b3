-- For a recursive `places`: what waits in a lane, as `skipped` and `subscription_id`, once each.
-- Skips along delivery_pending from one to the next: the cost grows with their number, not with
-- that of the deliveries.
(
    SELECT skipped, subscription_id
    FROM delivery_waiting
    WHERE status = 'PENDING' AND lane_id = %(lane)s
    ORDER BY skipped, subscription_id
    LIMIT 1
)
UNION ALL
SELECT following.*
FROM places
CROSS JOIN LATERAL (
    SELECT skipped, subscription_id
    FROM delivery_waiting
    WHERE status = 'PENDING' AND lane_id = %(lane)s
        AND (skipped, subscription_id) > (places.skipped, places.subscription_id)
    ORDER BY skipped, subscription_id
    LIMIT 1
) AS following
