-- Locks whole overdue QUEUE groups, up to a limit of deliveries for each cause, and returns their
-- PENDING deliveries. A group is left alone while a delivery of it is under way, which may become
-- DELIVERED and make the others REDUNDANT, or is locked by another transaction. The conditions use
-- the locked state of the rows, not the state at the statement's beginning.
-- Without partition pruning: see `delivery.database`.
WITH due AS MATERIALIZED (
    SELECT DISTINCT message_id, queue_group
    FROM (
        (
            SELECT message_id, queue_group
            FROM delivery_waiting
            WHERE status IN ('PENDING', 'IN_FLIGHT') AND queue_group IS NOT NULL
                AND expires_at <= now()
            ORDER BY expires_at
            LIMIT %(limit)s
        )
        UNION ALL
        (
            SELECT message_id, queue_group
            FROM delivery_waiting
            WHERE status IN ('PENDING', 'IN_FLIGHT') AND queue_group IS NOT NULL
                AND (
                    server_started_at < pg_postmaster_start_time()
                    OR server_started_at > pg_postmaster_start_time()
                )
            LIMIT %(limit)s
        )
    ) AS overdue
), locked AS MATERIALIZED (
    SELECT
        member.id, member.message_id, member.queue_group, member.status, member.attempts,
        member.subscription_id, member.lane_id, member.expires_at, member.server_started_at
    FROM (SELECT * FROM due ORDER BY message_id, queue_group) AS due
    CROSS JOIN LATERAL (
        SELECT *
        FROM delivery_delivery
        WHERE id BETWEEN due.message_id << 20 AND due.message_id << 20 | 1048575
            AND queue_group = due.queue_group
        ORDER BY id
        FOR NO KEY UPDATE SKIP LOCKED
    ) AS member
), weighed AS (
    SELECT
        locked.*, count(*) OVER its_group AS members,
        bool_or(
            locked.status = 'PENDING'
            AND locked.attempts = lane.run_attempts[array_position(lane.run_ids, locked.id)]
        ) OVER its_group AS is_under_way
    FROM locked
    LEFT JOIN delivery_lane lane ON lane.id = locked.lane_id
    WINDOW its_group AS (PARTITION BY locked.message_id, locked.queue_group)
)
SELECT
    CASE WHEN locked.expires_at <= now() THEN 'EXPIRED' ELSE 'DROPPED' END AS cause, locked.id,
    locked.lane_id, 0 AS receives, locked.server_started_at IS NOT NULL AS is_volatile,
    extract(epoch FROM locked.expires_at - message.published_at)::float8 AS seconds,
    pg_postmaster_start_time() AS started_at, locked.subscription_id,
    subscriber.name || '/' || subscription.name AS subscription
FROM weighed AS locked
CROSS JOIN LATERAL (
    SELECT published_at FROM delivery_message WHERE id = locked.message_id LIMIT 1
) AS message
JOIN subscriptions_subscription subscription ON subscription.id = locked.subscription_id
JOIN subscriptions_subscriber subscriber ON subscriber.id = subscription.subscriber_id
WHERE locked.status = 'PENDING'
    AND locked.is_under_way IS NOT TRUE
    AND locked.members = (
        SELECT count(*) FROM delivery_delivery member
        WHERE member.id BETWEEN locked.message_id << 20 AND locked.message_id << 20 | 1048575
            AND member.queue_group = locked.queue_group
    )
    AND (locked.expires_at <= now() OR locked.server_started_at <> pg_postmaster_start_time())
