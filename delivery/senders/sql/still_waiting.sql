-- The subscriptions of these with a delivery in the lane that waits to be sent: PENDING, and
-- neither held nor being cancelled.
SELECT subscription.id
FROM subscriptions_standing standing
JOIN subscriptions_subscription subscription ON subscription.id = standing.id
WHERE standing.id = ANY (%(subscription)s::bigint[]) AND standing.status = 'ACTIVE'
    AND subscription.cancellation_id IS NULL AND EXISTS (
        SELECT
        FROM delivery_waiting
        WHERE lane_id = %(lane)s AND skipped = ANY ('{f,t}'::boolean[])
            AND subscription_id = subscription.id
            AND status = 'PENDING'
    )
