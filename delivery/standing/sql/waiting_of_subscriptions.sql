-- Counts the open deliveries of each subscription, held deliveries included, up to a limit: in
-- lanes on delivery_pending, in the mailbox on delivery_in_mailbox, delivery_delayed and
-- delivery_leased. The ORDER BY of these indexes keeps the planner, whatever the statistics say,
-- from an index over all deliveries ever made.
SELECT
    subscription.id,
    (
        SELECT count(*) FROM (
            SELECT FROM (
                SELECT
                FROM delivery_subscriptionlane place
                JOIN delivery_waiting delivery
                    ON delivery.lane_id = place.lane_id
                WHERE place.subscription_id = subscription.id
                    AND delivery.skipped = ANY ('{f,t}'::boolean[])
                    AND delivery.subscription_id = subscription.id AND delivery.status = 'PENDING'
                UNION ALL
                (
                    SELECT FROM delivery_waiting
                    WHERE subscription_id BETWEEN subscription.id AND subscription.id
                        AND status = 'PENDING' AND lane_id IS NULL AND next_attempt_at IS NULL
                    ORDER BY subscription_id, id LIMIT %(limit)s + 1
                )
                UNION ALL
                (
                    SELECT FROM delivery_waiting
                    WHERE subscription_id BETWEEN subscription.id AND subscription.id
                        AND status = 'PENDING' AND lane_id IS NULL AND next_attempt_at IS NOT NULL
                    ORDER BY subscription_id, next_attempt_at LIMIT %(limit)s + 1
                )
                UNION ALL
                (
                    SELECT FROM delivery_waiting
                    WHERE subscription_id BETWEEN subscription.id AND subscription.id
                        AND status = 'IN_FLIGHT'
                    ORDER BY subscription_id, lease_expires_at, id LIMIT %(limit)s + 1
                )
            ) AS opened
            LIMIT %(limit)s + 1
        ) AS counted
    ) AS waiting
FROM subscriptions_subscription subscription
WHERE subscription.id = ANY (%(ids)s::bigint[])
