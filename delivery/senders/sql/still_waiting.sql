-- Of which of these subscriptions anything waits in the lane to be sent: PENDING, and the subscription is ACTIVE.
SELECT subscription.id
FROM subscriptions_subscription subscription
WHERE subscription.id = ANY (%(subscription)s::bigint[]) AND subscription.status = 'ACTIVE'
    AND subscription.cancellation_id IS NULL AND EXISTS (
        SELECT
        FROM delivery_waiting
        WHERE lane_id = %(lane)s AND skipped = ANY ('{f,t}'::boolean[]) AND subscription_id = subscription.id
            AND status = 'PENDING'
    )
