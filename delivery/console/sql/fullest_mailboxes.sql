-- The subscribers whose mailboxes have messages, oldest message first. Reads one entry of each of
-- the three mailbox indexes for each PULL subscription, whatever the backlog.
SELECT subscriber.id AS subscriber_id, subscriber.name AS subscriber
FROM subscriptions_subscription subscription
JOIN subscriptions_subscriber subscriber ON subscriber.id = subscription.subscriber_id
CROSS JOIN LATERAL (
    SELECT min(first.id) AS id FROM (
        (
            SELECT id FROM delivery_waiting
            WHERE subscription_id BETWEEN subscription.id AND subscription.id AND status = 'PENDING'
                AND lane_id IS NULL AND next_attempt_at IS NULL
            ORDER BY subscription_id, id LIMIT 1
        ) UNION ALL (
            SELECT id FROM delivery_waiting
            WHERE subscription_id BETWEEN subscription.id AND subscription.id AND status = 'PENDING'
                AND lane_id IS NULL AND next_attempt_at IS NOT NULL
            ORDER BY subscription_id, next_attempt_at LIMIT 1
        ) UNION ALL (
            SELECT id FROM delivery_waiting
            WHERE subscription_id BETWEEN subscription.id AND subscription.id
                AND status = 'IN_FLIGHT'
            ORDER BY subscription_id, lease_expires_at, id LIMIT 1
        )
    ) AS first
) AS oldest
WHERE subscription.mode = 'PULL' AND oldest.id IS NOT NULL
GROUP BY subscriber.id
ORDER BY min(oldest.id)
LIMIT %(rows)s
