-- How many deliveries of ACTIVE subscriptions wait in each of these lanes, counted up to a limit on delivery_pending.
SELECT
    lane.id,
    (
        SELECT count(*) FROM (
            SELECT
            FROM delivery_subscriptionlane place
            JOIN subscriptions_subscription subscription ON subscription.id = place.subscription_id
            JOIN delivery_delivery delivery
                ON delivery.lane_id = place.lane_id AND delivery.skipped = ANY ('{f,t}'::boolean[])
                AND delivery.subscription_id = subscription.id AND delivery.status = 'PENDING'
            WHERE place.lane_id = lane.id AND subscription.status = 'ACTIVE'
            LIMIT %(limit)s + 1
        ) AS counted
    ) AS waiting
FROM delivery_lane lane
WHERE lane.id = ANY (%(ids)s::bigint[])
