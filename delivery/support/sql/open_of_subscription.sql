-- The open deliveries of a subscription with ids in a range, oldest first, up to a limit: in lanes,
-- and in the mailbox those waiting, delayed and fetched. Each part walks a partial index
-- (delivery_pending, delivery_in_mailbox, delivery_delayed, delivery_leased), whatever was
-- delivered before; ranges of a single value make the planner do so, as in `fetch.sql`. With
-- `spares_resubmitted`, deliveries resubmitted by a person are left out.
SELECT id
FROM (
    SELECT delivery.id
    FROM delivery_subscriptionlane place
    CROSS JOIN (VALUES (false), (true)) AS kind (skipped)
    CROSS JOIN LATERAL (
        SELECT id
        FROM delivery_waiting
        WHERE lane_id BETWEEN place.lane_id AND place.lane_id AND skipped = kind.skipped
            AND subscription_id = place.subscription_id AND status = 'PENDING'
            AND id > %(after)s::bigint AND id <= %(until)s::bigint
            AND NOT (%(spares_resubmitted)s::boolean AND redelivery = 'resubmitted')
        ORDER BY lane_id, skipped, subscription_id, id
        LIMIT %(limit)s::int
    ) AS delivery
    WHERE place.subscription_id = %(subscription)s::bigint
    UNION ALL
    (
        SELECT id
        FROM delivery_waiting
        WHERE subscription_id BETWEEN %(subscription)s::bigint AND %(subscription)s::bigint
            AND status = 'PENDING' AND lane_id IS NULL AND next_attempt_at IS NULL
            AND id > %(after)s::bigint AND id <= %(until)s::bigint
            AND NOT (%(spares_resubmitted)s::boolean AND redelivery = 'resubmitted')
        ORDER BY subscription_id, id
        LIMIT %(limit)s::int
    )
    UNION ALL
    (
        SELECT id
        FROM delivery_waiting
        WHERE subscription_id = %(subscription)s::bigint AND next_attempt_at >= '-infinity'
            AND status = 'PENDING' AND lane_id IS NULL AND next_attempt_at IS NOT NULL
            AND id > %(after)s::bigint AND id <= %(until)s::bigint
            AND NOT (%(spares_resubmitted)s::boolean AND redelivery = 'resubmitted')
    )
    UNION ALL
    (
        SELECT id
        FROM delivery_waiting
        WHERE subscription_id = %(subscription)s::bigint AND lease_expires_at >= '-infinity'
            AND status = 'IN_FLIGHT'
            AND id > %(after)s::bigint AND id <= %(until)s::bigint
            AND NOT (%(spares_resubmitted)s::boolean AND redelivery = 'resubmitted')
    )
) AS open
ORDER BY id
LIMIT %(limit)s::int
