-- How many deliveries of each of these subscriptions are PENDING, held ones included, up to a limit on delivery_pending.
SELECT
    subscription.id,
    (
        SELECT count(*) FROM (
            SELECT
            FROM delivery_subscriptionlane place
            JOIN delivery_delivery delivery
                ON delivery.lane_id = place.lane_id
            WHERE place.subscription_id = subscription.id AND delivery.skipped = ANY ('{f,t}'::boolean[])
                AND delivery.subscription_id = subscription.id AND delivery.status = 'PENDING'
            LIMIT %(limit)s + 1
        ) AS counted
    ) AS waiting
FROM subscriptions_subscription subscription
WHERE subscription.id = ANY (%(ids)s::bigint[])
