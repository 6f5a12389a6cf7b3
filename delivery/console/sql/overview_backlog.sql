-- Pending deliveries, those of them that are held (their subscription is not ACTIVE) and those in
-- mailboxes, each up to a limit, the oldest one in a lane that is not held, and the moving lanes of
-- subscribers and queues with the oldest ones. Jumps from one (lane, skipped, subscription) to the
-- next on delivery_pending, and from one subscription to the next on delivery_in_mailbox: the cost
-- grows with the number of those that have pending deliveries, not with the backlog, the number of
-- subscriptions, or the settled deliveries. And the number of SHADOW subscriptions, by
-- subscription_shadow. What waits in a join is in no lane and in no mailbox.
WITH RECURSIVE places AS (
    (
        SELECT lane_id, skipped, subscription_id, id
        FROM delivery_waiting
        WHERE status = 'PENDING' AND lane_id IS NOT NULL
        ORDER BY lane_id, skipped, subscription_id, id
        LIMIT 1
    )
    UNION ALL
    SELECT following.*
    FROM places
    CROSS JOIN LATERAL (
        SELECT lane_id, skipped, subscription_id, id
        FROM delivery_waiting
        WHERE status = 'PENDING' AND lane_id IS NOT NULL
            AND (lane_id, skipped, subscription_id) > (
                places.lane_id, places.skipped, places.subscription_id
            )
        ORDER BY lane_id, skipped, subscription_id, id
        LIMIT 1
    ) AS following
), pending AS MATERIALIZED (
    SELECT places.*, standing.status
    FROM places
    JOIN subscriptions_standing standing ON standing.id = places.subscription_id
), without_lane AS (
    (
        SELECT subscription_id
        FROM delivery_waiting
        WHERE status = 'PENDING' AND lane_id IS NULL AND next_attempt_at IS NULL
        ORDER BY subscription_id, id
        LIMIT 1
    )
    UNION ALL
    SELECT following.*
    FROM without_lane
    CROSS JOIN LATERAL (
        SELECT subscription_id
        FROM delivery_waiting
        WHERE status = 'PENDING' AND lane_id IS NULL AND next_attempt_at IS NULL
            AND subscription_id > without_lane.subscription_id
        ORDER BY subscription_id, id
        LIMIT 1
    ) AS following
), at_once AS (
    SELECT subscription.mode
    FROM without_lane
    JOIN subscriptions_subscription subscription ON subscription.id = without_lane.subscription_id
    CROSS JOIN LATERAL (
        SELECT FROM delivery_waiting
        WHERE subscription_id BETWEEN subscription.id AND subscription.id
            AND status = 'PENDING' AND lane_id IS NULL AND next_attempt_at IS NULL
        ORDER BY subscription_id, id LIMIT %(limit)s + 1
    ) AS waiting
), in_mailboxes AS MATERIALIZED (
    (SELECT FROM at_once WHERE mode = 'PULL')
    UNION ALL
    (
        SELECT FROM delivery_waiting
        WHERE status = 'PENDING' AND lane_id IS NULL AND next_attempt_at IS NOT NULL
        ORDER BY subscription_id, next_attempt_at
    )
    LIMIT %(limit)s + 1
)
SELECT
    (SELECT count(*) FROM (
        (
            SELECT FROM delivery_waiting
            WHERE status = 'PENDING' AND lane_id IS NOT NULL
            ORDER BY lane_id, skipped, subscription_id, id
        )
        UNION ALL
        (SELECT FROM in_mailboxes)
        UNION ALL
        (SELECT FROM at_once WHERE mode <> 'PULL')
        LIMIT %(limit)s + 1
    ) AS counted) AS backlog,
    (SELECT count(*) FROM in_mailboxes) AS in_mailboxes,
    (SELECT count(*) FROM (
        SELECT FROM (
            SELECT
            FROM pending
            JOIN delivery_waiting delivery
                ON delivery.lane_id = pending.lane_id AND delivery.skipped = pending.skipped
                AND delivery.subscription_id = pending.subscription_id
                AND delivery.status = 'PENDING'
            WHERE pending.status <> 'ACTIVE'
            UNION ALL
            SELECT
            FROM without_lane
            JOIN subscriptions_subscription subscription
                ON subscription.id = without_lane.subscription_id
            JOIN subscriptions_standing standing
                ON standing.id = subscription.id AND standing.status <> 'ACTIVE'
            CROSS JOIN LATERAL (
                SELECT FROM delivery_waiting
                WHERE subscription_id BETWEEN subscription.id AND subscription.id
                    AND status = 'PENDING' AND lane_id IS NULL AND next_attempt_at IS NULL
                ORDER BY subscription_id, id LIMIT %(limit)s + 1
            ) AS mailbox
            WHERE subscription.mode = 'PULL'
        ) AS held
        LIMIT %(limit)s + 1
    ) AS counted) AS held,
    (
        SELECT message.published_at
        FROM delivery_waiting delivery
        JOIN delivery_message message ON message.id = delivery.message_id
        WHERE delivery.id = (SELECT min(pending.id) FROM pending WHERE pending.status = 'ACTIVE')
    ) AS oldest_at,
    ARRAY(
        SELECT lane.id
        FROM (
            SELECT lane_id, min(id) AS oldest_id
            FROM pending
            WHERE status = 'ACTIVE' AND NOT skipped
            GROUP BY lane_id
        ) AS waiting
        JOIN delivery_lane lane
            ON lane.id = waiting.lane_id AND lane.state = 'IDLE' AND lane.kind IN ('TOPIC', 'QUEUE')
        ORDER BY waiting.oldest_id
        LIMIT %(lanes)s
    ) AS moving_lanes,
    (SELECT count(*) FROM (
        SELECT FROM delivery_settled delivery WHERE delivery.status = 'IN_DOUBT' LIMIT %(limit)s + 1
    ) AS counted) AS in_doubt,
    (SELECT count(*) FROM subscriptions_subscription WHERE id > 0 AND status = 'SHADOW') AS shadows
