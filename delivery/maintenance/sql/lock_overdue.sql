-- Locks overdue deliveries, up to a limit for each cause, and returns the columns of their reasons.
-- USED_UP: fetched from a mailbox as often as allowed, and out longer than the visibility. DROPPED:
-- VOLATILE from an earlier server start. EXPIRED: past `expires_at`. Leased or running deliveries
-- are left alone: a delivery named by a lane's run, with the present number of attempts, may be at
-- the receiver. Rows locked by others are left alone, too. `lock_overdue_groups.sql` handles QUEUE
-- groups. Leans on delivery_leased, on which it skips from subscription to subscription, on
-- delivery_volatile, and on delivery_expiring: the cost does not grow with the subscriptions. If an
-- event type is no longer VOLATILE, deliveries fetched before the change are settled when the
-- mailbox's days are over.
-- Without partition pruning: see `delivery.database`.
WITH RECURSIVE leased AS (
    (
        SELECT subscription_id
        FROM delivery_waiting
        WHERE status = 'IN_FLIGHT'
        ORDER BY subscription_id
        LIMIT 1
    )
    UNION ALL
    SELECT following.subscription_id
    FROM leased
    CROSS JOIN LATERAL (
        SELECT subscription_id
        FROM delivery_waiting
        WHERE status = 'IN_FLIGHT' AND subscription_id > leased.subscription_id
        ORDER BY subscription_id
        LIMIT 1
    ) AS following
), used_up AS MATERIALIZED (
    SELECT delivery.*
    FROM leased
    JOIN subscriptions_subscription subscription ON subscription.id = leased.subscription_id
    JOIN subscriptions_eventtype event_type ON event_type.id = subscription.event_type_id
    CROSS JOIN LATERAL (
        SELECT
            id, message_id, subscription_id, lane_id, receive_count - attempts_before AS receives,
            expires_at, server_started_at
        FROM delivery_waiting
        WHERE subscription_id = subscription.id AND status = 'IN_FLIGHT'
            AND lease_expires_at <= now()
            AND (
                server_started_at IS NOT NULL
                OR receive_count - attempts_before >= subscription.max_receives
            )
        ORDER BY lease_expires_at, id
        LIMIT %(limit)s
        FOR NO KEY UPDATE SKIP LOCKED
    ) AS delivery
    WHERE subscription.mode = 'PULL'
        AND (subscription.max_receives IS NOT NULL OR event_type.durability = 'VOLATILE')
    LIMIT %(limit)s
), dropped AS MATERIALIZED (
    SELECT
        delivery.id, delivery.message_id, delivery.subscription_id, delivery.lane_id,
        delivery.receive_count - delivery.attempts_before AS receives, delivery.expires_at,
        delivery.server_started_at
    FROM delivery_waiting delivery
    LEFT JOIN delivery_lane lane ON lane.id = delivery.lane_id
    WHERE delivery.status IN ('PENDING', 'IN_FLIGHT') AND delivery.queue_group IS NULL
        AND (
            delivery.server_started_at < pg_postmaster_start_time()
            OR delivery.server_started_at > pg_postmaster_start_time()
        )
        AND (delivery.status = 'PENDING' OR delivery.lease_expires_at <= now())
        AND (
            delivery.attempts = lane.run_attempts[array_position(lane.run_ids, delivery.id)]
        ) IS NOT TRUE
    LIMIT %(limit)s
    FOR NO KEY UPDATE OF delivery SKIP LOCKED
), expired AS MATERIALIZED (
    SELECT
        delivery.id, delivery.message_id, delivery.subscription_id, delivery.lane_id,
        delivery.receive_count - delivery.attempts_before AS receives, delivery.expires_at,
        delivery.server_started_at
    FROM delivery_waiting delivery
    LEFT JOIN delivery_lane lane ON lane.id = delivery.lane_id
    WHERE delivery.status IN ('PENDING', 'IN_FLIGHT') AND delivery.queue_group IS NULL
        AND delivery.expires_at <= now()
        AND (delivery.status = 'PENDING' OR delivery.lease_expires_at <= now())
        AND (
            delivery.attempts = lane.run_attempts[array_position(lane.run_ids, delivery.id)]
        ) IS NOT TRUE
    ORDER BY delivery.expires_at
    LIMIT %(limit)s
    FOR NO KEY UPDATE OF delivery SKIP LOCKED
)
SELECT
    overdue.cause, overdue.id, overdue.lane_id, overdue.receives,
    overdue.server_started_at IS NOT NULL AS is_volatile,
    extract(epoch FROM overdue.expires_at - message.published_at)::float8 AS seconds,
    pg_postmaster_start_time() AS started_at, subscription.join_mode = 'ALL' AS is_joined,
    overdue.subscription_id, subscriber.name || '/' || subscription.name AS subscription
FROM (
    SELECT 'USED_UP' AS cause, used_up.* FROM used_up
    UNION ALL
    SELECT 'DROPPED', dropped.* FROM dropped
    UNION ALL
    SELECT 'EXPIRED', expired.* FROM expired
) AS overdue
JOIN delivery_message message ON message.id = overdue.message_id
JOIN subscriptions_subscription subscription ON subscription.id = overdue.subscription_id
JOIN subscriptions_subscriber subscriber ON subscriber.id = subscription.subscriber_id
