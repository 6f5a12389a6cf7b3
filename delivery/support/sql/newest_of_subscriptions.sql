-- The messages of the newest deliveries of some subscriptions, with ids in a range and any of the
-- statuses: of each subscription up to `limit`. Returns the ids of the messages, and the first of
-- them from which on they are complete, or null if they are complete in the whole range. Each part
-- walks an index from the end: settled deliveries on delivery_of_subscription, open deliveries as
-- in `open_of_subscription.sql`.
WITH newest AS MATERIALIZED (
    SELECT subscription.id AS subscription_id, delivery.id >> 20 AS message_id
    FROM unnest(%(subscriptions)s::bigint[]) AS subscription (id)
    CROSS JOIN LATERAL (
        (
            SELECT id
            FROM delivery_settled
            WHERE subscription_id = subscription.id AND status = ANY (%(statuses)s::text[])
                AND id >= %(first)s::bigint AND id <= %(last)s::bigint
            ORDER BY id DESC
            LIMIT %(limit)s::int
        )
        UNION ALL
        SELECT pending.id
        FROM delivery_subscriptionlane place
        CROSS JOIN (VALUES (false), (true)) AS kind (skipped)
        CROSS JOIN LATERAL (
            SELECT id
            FROM delivery_waiting
            WHERE lane_id BETWEEN place.lane_id AND place.lane_id AND skipped = kind.skipped
                AND subscription_id = place.subscription_id AND status = 'PENDING'
                AND id >= %(first)s::bigint AND id <= %(last)s::bigint
            ORDER BY lane_id DESC, skipped DESC, subscription_id DESC, id DESC
            LIMIT %(limit)s::int
        ) AS pending
        WHERE place.subscription_id = subscription.id AND 'PENDING' = ANY (%(statuses)s::text[])
        UNION ALL
        (
            SELECT id
            FROM delivery_waiting
            WHERE subscription_id BETWEEN subscription.id AND subscription.id
                AND status = 'PENDING' AND lane_id IS NULL AND next_attempt_at IS NULL
                AND 'PENDING' = ANY (%(statuses)s::text[])
                AND id >= %(first)s::bigint AND id <= %(last)s::bigint
            ORDER BY subscription_id DESC, id DESC
            LIMIT %(limit)s::int
        )
        UNION ALL
        SELECT id
        FROM delivery_waiting
        WHERE subscription_id = subscription.id AND next_attempt_at >= '-infinity'
            AND status = 'PENDING' AND lane_id IS NULL AND next_attempt_at IS NOT NULL
            AND 'PENDING' = ANY (%(statuses)s::text[])
            AND id >= %(first)s::bigint AND id <= %(last)s::bigint
        UNION ALL
        SELECT id
        FROM delivery_waiting
        WHERE subscription_id = subscription.id AND lease_expires_at >= '-infinity'
            AND status = 'IN_FLIGHT' AND 'IN_FLIGHT' = ANY (%(statuses)s::text[])
            AND id >= %(first)s::bigint AND id <= %(last)s::bigint
        ORDER BY id DESC
        LIMIT %(limit)s::int
    ) AS delivery
), reached AS (
    -- Older deliveries of a subscription with as many rows as the limit may exist.
    SELECT max(oldest) AS message_id
    FROM (
        SELECT min(message_id) AS oldest
        FROM newest
        GROUP BY subscription_id
        HAVING count(*) >= %(limit)s::int
    ) AS of_subscription
)
SELECT
    coalesce(array_agg(DISTINCT newest.message_id) FILTER (
        WHERE newest.message_id >= coalesce(reached.message_id, 0)
    ), '{}') AS messages,
    max(reached.message_id) AS reached
FROM reached LEFT JOIN newest ON true
