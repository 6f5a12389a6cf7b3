-- The deliveries of a subscription that are not settled, up to a limit: in its mailbox, put off there, fetched from there, in lanes.
-- The first three each walk their partial index (delivery_in_mailbox, delivery_delayed, delivery_leased; the ranges are
-- for that, as in `fetch.sql`), whatever was delivered before. The last is read only when those are too few.
(
    SELECT id
    FROM delivery_delivery
    WHERE subscription_id BETWEEN %(subscription)s::bigint AND %(subscription)s::bigint
        AND status = 'PENDING' AND lane_id IS NULL AND next_attempt_at IS NULL
    ORDER BY subscription_id, id
    LIMIT %(limit)s::int
)
UNION ALL
(
    SELECT id
    FROM delivery_delivery
    WHERE subscription_id BETWEEN %(subscription)s::bigint AND %(subscription)s::bigint
        AND status = 'PENDING' AND lane_id IS NULL AND next_attempt_at IS NOT NULL
    ORDER BY subscription_id, next_attempt_at
    LIMIT %(limit)s::int
)
UNION ALL
(
    SELECT id
    FROM delivery_delivery
    WHERE subscription_id BETWEEN %(subscription)s::bigint AND %(subscription)s::bigint AND status = 'IN_FLIGHT'
    ORDER BY subscription_id, lease_expires_at, id
    LIMIT %(limit)s::int
)
UNION ALL
(
    SELECT id
    FROM delivery_delivery
    WHERE subscription_id = %(subscription)s::bigint AND status = 'PENDING' AND lane_id IS NOT NULL
    ORDER BY id
    LIMIT %(limit)s::int
)
LIMIT %(limit)s::int
