-- The subscribers whose mailboxes have messages, oldest message first. Jumps from subscription to
-- subscription on each of the three mailbox indexes: the cost grows with the number of those with
-- messages, not with the backlog or the number of subscriptions.
WITH RECURSIVE filled AS (
    SELECT place, 0::bigint AS subscription_id, 0::bigint AS id
    FROM unnest('{AVAILABLE,DELAYED,FETCHED}'::text[]) AS place
    UNION ALL
    SELECT filled.place, following.*
    FROM filled
    CROSS JOIN LATERAL (
        (
            SELECT subscription_id, id FROM delivery_waiting
            WHERE filled.place = 'AVAILABLE' AND subscription_id > filled.subscription_id
                AND status = 'PENDING' AND lane_id IS NULL AND next_attempt_at IS NULL
            ORDER BY subscription_id, id LIMIT 1
        ) UNION ALL (
            SELECT subscription_id, id FROM delivery_waiting
            WHERE filled.place = 'DELAYED' AND subscription_id > filled.subscription_id
                AND status = 'PENDING' AND lane_id IS NULL AND next_attempt_at IS NOT NULL
            ORDER BY subscription_id, next_attempt_at LIMIT 1
        ) UNION ALL (
            SELECT subscription_id, id FROM delivery_waiting
            WHERE filled.place = 'FETCHED' AND subscription_id > filled.subscription_id
                AND status = 'IN_FLIGHT'
            ORDER BY subscription_id, lease_expires_at, id LIMIT 1
        )
    ) AS following
)
SELECT subscriber.id AS subscriber_id, subscriber.name AS subscriber
FROM filled
JOIN subscriptions_subscription subscription
    ON subscription.id = filled.subscription_id AND subscription.mode = 'PULL'
JOIN subscriptions_subscriber subscriber ON subscriber.id = subscription.subscriber_id
GROUP BY subscriber.id
ORDER BY min(filled.id)
LIMIT %(rows)s
