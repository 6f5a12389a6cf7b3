-- The numbers of pending deliveries, of held deliveries (their subscription is not ACTIVE) and of
-- those in mailboxes, each up to a limit. Also the oldest in a lane not held, and the moving lanes
-- of subscribers and queues with the oldest deliveries. Reads the first entries of delivery_pending
-- in one pass, up to the limit, because a jump costs as much as 30 entries. Beyond them it jumps
-- from (lane, skipped, subscription) to the next, and on delivery_in_mailbox from subscription to
-- subscription: the cost grows with the number of those with pending deliveries, not with the
-- backlog of lanes or the settled deliveries. A delivery is held if the subscription is in the set
-- of those not ACTIVE, or whose subscriber is not (by subscription_not_active and subscriber_held):
-- the cost of the set grows with their number, and is smaller than a look-up of both rows for each
-- place. And the number of SHADOW subscriptions, by subscription_shadow, and whether all sending is
-- HELD. A delivery waiting in a join is in no lane and in no mailbox.
WITH RECURSIVE counted AS MATERIALIZED (
    SELECT lane_id, skipped, subscription_id, min(id) AS id, count(*) AS found
    FROM (
        SELECT lane_id, skipped, subscription_id, id
        FROM delivery_waiting
        WHERE status = 'PENDING' AND lane_id IS NOT NULL
        ORDER BY lane_id, skipped, subscription_id, id
        LIMIT %(limit)s + 1
    ) AS first
    GROUP BY lane_id, skipped, subscription_id
), in_lanes AS MATERIALIZED (
    SELECT coalesce(sum(found), 0)::bigint AS found FROM counted
), beyond AS (
    SELECT following.*
    FROM (
        SELECT lane_id, skipped, subscription_id
        FROM counted
        WHERE (SELECT found FROM in_lanes) > %(limit)s
        ORDER BY lane_id DESC, skipped DESC, subscription_id DESC
        LIMIT 1
    ) AS last
    CROSS JOIN LATERAL (
        SELECT lane_id, skipped, subscription_id, id
        FROM delivery_waiting
        WHERE status = 'PENDING' AND lane_id IS NOT NULL
            AND (lane_id, skipped, subscription_id) > (
                last.lane_id, last.skipped, last.subscription_id
            )
        ORDER BY lane_id, skipped, subscription_id, id
        LIMIT 1
    ) AS following
    UNION ALL
    SELECT following.*
    FROM beyond
    CROSS JOIN LATERAL (
        SELECT lane_id, skipped, subscription_id, id
        FROM delivery_waiting
        WHERE status = 'PENDING' AND lane_id IS NOT NULL
            AND (lane_id, skipped, subscription_id) > (
                beyond.lane_id, beyond.skipped, beyond.subscription_id
            )
        ORDER BY lane_id, skipped, subscription_id, id
        LIMIT 1
    ) AS following
), places AS (
    SELECT lane_id, skipped, subscription_id, id FROM counted
    UNION ALL
    SELECT lane_id, skipped, subscription_id, id FROM beyond
), stopped AS MATERIALIZED (
    SELECT id FROM subscriptions_subscription WHERE status <> 'ACTIVE'
    UNION ALL
    SELECT subscription.id
    FROM subscriptions_subscriber subscriber
    JOIN subscriptions_subscription subscription ON subscription.subscriber_id = subscriber.id
    WHERE subscriber.status <> 'ACTIVE'
), sending AS MATERIALIZED (
    SELECT NOT EXISTS (
        SELECT FROM subscriptions_installation WHERE id = 1 AND sending = 'HELD'
    ) AS is_on
), pending AS MATERIALIZED (
    SELECT
        places.*,
        (SELECT is_on FROM sending) AND subscription_id NOT IN (SELECT id FROM stopped) AS is_active
    FROM places
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
), at_once AS MATERIALIZED (
    SELECT subscription.mode = 'PULL' AS is_mailbox, waiting.found
    FROM without_lane
    JOIN subscriptions_subscription subscription ON subscription.id = without_lane.subscription_id
    CROSS JOIN LATERAL (
        SELECT count(*) AS found
        FROM (
            SELECT FROM delivery_waiting
            WHERE subscription_id BETWEEN subscription.id AND subscription.id
                AND status = 'PENDING' AND lane_id IS NULL AND next_attempt_at IS NULL
            ORDER BY subscription_id, id LIMIT %(limit)s + 1
        ) AS first
    ) AS waiting
), in_mailboxes AS MATERIALIZED (
    SELECT
        least(
            (SELECT coalesce(sum(found), 0)::bigint FROM at_once WHERE is_mailbox)
                + (SELECT count(*) FROM (
                    SELECT FROM delivery_waiting
                    WHERE status = 'PENDING' AND lane_id IS NULL AND next_attempt_at IS NOT NULL
                    ORDER BY subscription_id, next_attempt_at LIMIT %(limit)s + 1
                ) AS delayed),
            %(limit)s + 1
        ) AS found
)
SELECT
    least(
        (SELECT found FROM in_lanes) + (SELECT found FROM in_mailboxes)
            + (SELECT coalesce(sum(found), 0)::bigint FROM at_once WHERE NOT is_mailbox),
        %(limit)s + 1
    ) AS backlog,
    (SELECT found FROM in_mailboxes) AS in_mailboxes,
    (SELECT count(*) FROM (
        SELECT FROM (
            SELECT
            FROM pending
            JOIN delivery_waiting delivery
                ON delivery.lane_id = pending.lane_id AND delivery.skipped = pending.skipped
                AND delivery.subscription_id = pending.subscription_id
                AND delivery.status = 'PENDING'
            WHERE NOT pending.is_active
            UNION ALL
            SELECT
            FROM without_lane
            JOIN subscriptions_subscription subscription
                ON subscription.id = without_lane.subscription_id
            CROSS JOIN LATERAL (
                SELECT FROM delivery_waiting
                WHERE subscription_id BETWEEN subscription.id AND subscription.id
                    AND status = 'PENDING' AND lane_id IS NULL AND next_attempt_at IS NULL
                ORDER BY subscription_id, id LIMIT %(limit)s + 1
            ) AS mailbox
            WHERE subscription.mode = 'PULL' AND NOT (
                (SELECT is_on FROM sending) AND subscription.id NOT IN (SELECT id FROM stopped)
            )
        ) AS held
        LIMIT %(limit)s + 1
    ) AS counted) AS held,
    (
        SELECT message.published_at
        FROM delivery_waiting delivery
        JOIN delivery_message message ON message.id = delivery.message_id
        WHERE delivery.id = (SELECT min(id) FROM pending WHERE is_active)
    ) AS oldest_at,
    ARRAY(
        SELECT waiting.lane_id
        FROM (
            SELECT lane_id, min(id) AS oldest_id
            FROM pending
            WHERE is_active AND NOT skipped
            GROUP BY lane_id
            ORDER BY oldest_id
        ) AS waiting
        -- In turn, until enough are found.
        CROSS JOIN LATERAL (
            SELECT FROM delivery_lane
            WHERE id = waiting.lane_id AND state = 'IDLE' AND kind IN ('TOPIC', 'QUEUE')
            LIMIT 1
        ) AS moving
        ORDER BY waiting.oldest_id
        LIMIT %(lanes)s
    ) AS moving_lanes,
    (SELECT count(*) FROM (
        SELECT FROM delivery_settled delivery WHERE delivery.status = 'IN_DOUBT' LIMIT %(limit)s + 1
    ) AS counted) AS in_doubt,
    (SELECT count(*) FROM subscriptions_subscription WHERE id > 0 AND status = 'SHADOW') AS shadows,
    (SELECT NOT is_on FROM sending) AS is_sending_held
