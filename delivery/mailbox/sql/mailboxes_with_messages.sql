-- Returns those of these subscribers with a message in the mailbox for `fetch` to hand out now. A
-- probe per subscription into each of delivery_in_mailbox, delivery_delayed and delivery_leased,
-- however deep they are. The range of a subscription and the orders are for the planner, see
-- `fetch`.
WITH mailbox AS MATERIALIZED (
    SELECT id, subscriber_id, max_receives
    FROM subscriptions_subscription
    WHERE subscriber_id = ANY(%(subscribers)s::bigint[]) AND mode = 'PULL' AND status = 'ACTIVE'
        AND cancellation_id IS NULL
        AND NOT EXISTS (
            SELECT
            FROM subscriptions_subscriber subscriber
            WHERE subscriber.id = subscriptions_subscription.subscriber_id
                AND subscriber.status <> 'ACTIVE'
        ) AND NOT EXISTS (SELECT FROM subscriptions_installation WHERE id = 1 AND sending = 'HELD')
)
SELECT DISTINCT mailbox.subscriber_id
FROM mailbox
CROSS JOIN LATERAL (
    (
        SELECT id
        FROM delivery_waiting
        WHERE subscription_id BETWEEN mailbox.id AND mailbox.id
            AND status = 'PENDING' AND lane_id IS NULL AND next_attempt_at IS NULL
            AND {is_fresh(delivery_waiting)}
        ORDER BY subscription_id, id
        LIMIT 1
    )
    UNION ALL
    (
        SELECT id
        FROM delivery_waiting
        WHERE subscription_id = mailbox.id AND next_attempt_at <= now()
            AND status = 'PENDING' AND lane_id IS NULL AND next_attempt_at IS NOT NULL
            AND {is_fresh(delivery_waiting)}
        ORDER BY next_attempt_at
        LIMIT 1
    )
    UNION ALL
    (
        SELECT id
        FROM delivery_waiting
        WHERE subscription_id = mailbox.id AND lease_expires_at <= now()
            AND status = 'IN_FLIGHT'
            AND (expires_at IS NULL OR expires_at > now())
            AND server_started_at IS NULL
            AND (
                mailbox.max_receives IS NULL
                OR receive_count - attempts_before < mailbox.max_receives
            )
        ORDER BY lease_expires_at, id
        LIMIT 1
    )
) AS available
