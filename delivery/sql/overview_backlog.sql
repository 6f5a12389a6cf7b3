-- What is pending for ACTIVE and for INACTIVE subscriptions (each up to a limit), and the oldest that is not held.
-- One probe of delivery_pending a subscription and side of `skipped`, never a scan of what is settled.
WITH pending AS (
    SELECT subscription.status, oldest.id
    FROM subscriptions_subscription subscription
    JOIN delivery_subscriptionlane place ON place.subscription_id = subscription.id
    CROSS JOIN (VALUES (false), (true)) AS side (skipped)
    CROSS JOIN LATERAL (
        SELECT delivery.id
        FROM delivery_delivery delivery
        WHERE delivery.lane_id = place.lane_id AND delivery.skipped = side.skipped
            AND delivery.subscription_id = subscription.id AND delivery.status = 'PENDING'
        ORDER BY delivery.id
        LIMIT 1
    ) AS oldest
)
SELECT
    (SELECT count(*) FROM (
        SELECT FROM delivery_delivery delivery WHERE delivery.status = 'PENDING' LIMIT %(limit)s + 1
    ) AS counted) AS backlog,
    (SELECT count(*) FROM (
        SELECT
        FROM subscriptions_subscription subscription
        JOIN delivery_subscriptionlane place ON place.subscription_id = subscription.id
        JOIN delivery_delivery delivery
            ON delivery.lane_id = place.lane_id AND delivery.skipped = ANY ('{f,t}'::boolean[])
            AND delivery.subscription_id = subscription.id AND delivery.status = 'PENDING'
        WHERE subscription.status = 'INACTIVE'
        LIMIT %(limit)s + 1
    ) AS counted) AS held,
    (
        SELECT message.published_at
        FROM pending
        JOIN delivery_delivery delivery ON delivery.id = pending.id
        JOIN delivery_message message ON message.id = delivery.message_id
        WHERE pending.status = 'ACTIVE'
        ORDER BY pending.id
        LIMIT 1
    ) AS oldest_at,
    (SELECT count(*) FROM (
        SELECT FROM delivery_delivery delivery WHERE delivery.status = 'IN_DOUBT' LIMIT %(limit)s + 1
    ) AS counted) AS in_doubt
