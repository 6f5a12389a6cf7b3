-- Locks deliveries that are to be settled because their time is over, up to a limit for each cause, and
-- returns what is told of them. USED_UP: fetched from a mailbox as often as may be, and out longer than its
-- visibility. DROPPED: VOLATILE, of an earlier server. EXPIRED: past its time. What is leased or under way is
-- left alone: what a lane's run names, with as many attempts as it had then, may be at its receiver. So is
-- what somebody else has locked. What is of a QUEUE group is in `lock_overdue_groups.sql`. Leans on
-- delivery_leased, of mailboxes where something can be used up, on delivery_volatile, and on
-- delivery_expiring. Of an event type that is VOLATILE no longer, what was fetched before is settled when its
-- mailbox's days are over.
-- Looks into all partitions: see `delivery.database`.
WITH used_up AS MATERIALIZED (
    SELECT delivery.*
    FROM subscriptions_subscription subscription
    JOIN subscriptions_eventtype event_type ON event_type.id = subscription.event_type_id
    CROSS JOIN LATERAL (
        SELECT
            id, message_id, subscription_id, lane_id, receive_count - attempts_before AS receives, expires_at,
            server_started_at
        FROM delivery_waiting
        WHERE subscription_id = subscription.id AND status = 'IN_FLIGHT' AND lease_expires_at <= now()
            AND (server_started_at IS NOT NULL OR receive_count - attempts_before >= subscription.max_receives)
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
        delivery.receive_count - delivery.attempts_before AS receives, delivery.expires_at, delivery.server_started_at
    FROM delivery_waiting delivery
    LEFT JOIN delivery_lane lane ON lane.id = delivery.lane_id
    WHERE delivery.status IN ('PENDING', 'IN_FLIGHT') AND delivery.queue_group IS NULL
        AND (
            delivery.server_started_at < pg_postmaster_start_time()
            OR delivery.server_started_at > pg_postmaster_start_time()
        )
        AND (delivery.status = 'PENDING' OR delivery.lease_expires_at <= now())
        AND (delivery.attempts = lane.run_attempts[array_position(lane.run_ids, delivery.id)]) IS NOT TRUE
    LIMIT %(limit)s
    FOR NO KEY UPDATE OF delivery SKIP LOCKED
), expired AS MATERIALIZED (
    SELECT
        delivery.id, delivery.message_id, delivery.subscription_id, delivery.lane_id,
        delivery.receive_count - delivery.attempts_before AS receives, delivery.expires_at, delivery.server_started_at
    FROM delivery_waiting delivery
    LEFT JOIN delivery_lane lane ON lane.id = delivery.lane_id
    WHERE delivery.status IN ('PENDING', 'IN_FLIGHT') AND delivery.queue_group IS NULL
        AND delivery.expires_at <= now()
        AND (delivery.status = 'PENDING' OR delivery.lease_expires_at <= now())
        AND (delivery.attempts = lane.run_attempts[array_position(lane.run_ids, delivery.id)]) IS NOT TRUE
    ORDER BY delivery.expires_at
    LIMIT %(limit)s
    FOR NO KEY UPDATE OF delivery SKIP LOCKED
)
SELECT
    overdue.cause, overdue.id, overdue.lane_id, overdue.receives, overdue.server_started_at IS NOT NULL AS is_volatile,
    extract(epoch FROM overdue.expires_at - message.published_at)::float8 AS seconds, pg_postmaster_start_time() AS started_at,
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
