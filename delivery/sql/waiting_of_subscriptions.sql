-- How many deliveries of each of these subscriptions are PENDING, held ones included, up to a limit on delivery_pending.
SELECT
    subscription.id,
    (
        SELECT count(*) FROM (
            SELECT
            FROM delivery_delivery delivery
            WHERE delivery.lane_id = lane.id AND delivery.skipped = ANY ('{f,t}'::boolean[])
                AND delivery.subscription_id = subscription.id AND delivery.status = 'PENDING'
            LIMIT %(limit)s + 1
        ) AS counted
    ) AS waiting
FROM subscriptions_subscription subscription
JOIN delivery_lane lane ON lane.subscriber_id = subscription.subscriber_id
WHERE subscription.id = ANY (%(ids)s::bigint[])
