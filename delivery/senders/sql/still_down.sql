-- Those of these endpoints that are DOWN: no lane has reached them since, and they are the same.
-- `is_waiting`: a delivery in the lane waits for it to be sent, PENDING and neither held nor being
-- cancelled.
SELECT
    health.subscription_id AS id,
    EXISTS (
        SELECT
        FROM subscriptions_standing standing
        JOIN subscriptions_subscription subscription ON subscription.id = standing.id
        CROSS JOIN LATERAL (
            SELECT
            FROM delivery_waiting
            WHERE lane_id = %(lane)s AND skipped = ANY ('{f,t}'::boolean[])
                AND subscription_id = subscription.id
                AND status = 'PENDING'
            LIMIT 1
        ) AS waiting
        WHERE standing.id = health.subscription_id AND standing.status = 'ACTIVE'
            AND subscription.cancellation_id IS NULL
    ) AS is_waiting
FROM delivery_endpointhealth health
WHERE health.subscription_id = ANY (%(subscription)s::bigint[])
